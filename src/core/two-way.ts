/** Which rows a page has, seen from a key: those on one side of it, nearest first, with its own row or without. */
export type Side = "older" | "older_or_same" | "newer" | "newer_or_same";

export interface Place<Key> {
  key: Key;
  side: Side;
}

export function isTowardNewer(place: Place<unknown> | null): boolean {
  return place !== null && place.side.startsWith("newer");
}

/**
 * Where the pages on either side of one begin, so that neither repeats nor leaves out a row, whatever was inserted meanwhile.
 * `keys` are the page's, newest first; `rest` is how far it looked, null when nothing is behind that. `newer` is null for the
 * page that begins at the top of the list, and for one that reached it.
 */
export function placesAround<Key>(
  from: Place<Key> | null,
  keys: Key[],
  rest: Key | null,
): { older: Place<Key> | null; newer: Place<Key> | null } {
  if (isTowardNewer(from)) {
    return {
      older: keys.length > 0 ? { key: keys.at(-1)!, side: "older" } : opposite(from!),
      newer: rest === null ? null : { key: rest, side: "newer" },
    };
  }
  const newer = keys.length > 0 ? ({ key: keys[0]!, side: "newer" } as const) : from && opposite(from);
  return { older: rest === null ? null : { key: rest, side: "older" }, newer: from && newer };
}

/** All rows that are not on this side. */
function opposite<Key>({ key, side }: Place<Key>): Place<Key> {
  const OPPOSITE = {
    older: "newer_or_same",
    older_or_same: "newer",
    newer: "older_or_same",
    newer_or_same: "older",
  } as const;
  return { key, side: OPPOSITE[side] };
}
