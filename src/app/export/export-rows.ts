import { encodeCursor } from "../../core/cursor.ts";
import { compareKeys } from "../../core/row-keys.ts";
import type { Runtime } from "../runtime.ts";

/** Rows of one page of the ledger: about half a megabyte of lines. */
export const PAGE_ROWS = 500;
/**
 * Who is acknowledged late is stored late, under an id that says when it came: until then an export would go past it. Longer than
 * any store may take, all tries together.
 */
const SETTLED_AFTER_MS = 5 * 60_000;
/** An answer ends with a cursor after this: a request must not last longer than the platform lets it. */
const MAX_ANSWER_MS = 20_000;

/** What an export ends with. */
export interface ExportEnd {
  nextCursor: string;
  /** There may be more already. */
  hasMore: boolean;
  /** Milliseconds: what was made before is what is exported so far, now that nothing can come before it any more. */
  until: number;
}

/** One part after the other, when it is asked for; the last has an end. */
export interface Export<Row> {
  next(): Promise<{ rows: Row[]; end: ExportEnd | null }>;
}

export interface Walk<Row, Place extends readonly (string | number)[]> {
  kind: string;
  from: Place;
  until: number;
  /** What stands for the end of the walk: everything before `until` comes before it. */
  end: Place;
  /** At most PAGE_ROWS rows that may be shown, in order, and where to go on; null at the end. */
  read(after: Place): Promise<{ rows: { row: Row; place: Place }[]; next: Place | null }>;
}

/** What is settled, of what was asked for. */
export function settledUntil(now: number, createdBefore: number | undefined, unfinishedSince: number | null): number {
  return Math.min(createdBefore ?? Infinity, now - SETTLED_AFTER_MS, unfinishedSince ?? Infinity);
}

/** Reads on only when it is asked to: what nobody takes is not read. */
export function startExport<Row, Place extends readonly (string | number)[]>(
  { now }: Pick<Runtime, "now">,
  { kind, from, until, end, read }: Walk<Row, Place>,
  limit: number,
): Export<Row> {
  const begunAt = now();
  const endAt = (place: Place, hasMore: boolean): ExportEnd => ({
    nextCursor: encodeCursor([kind, ...place]),
    hasMore,
    until,
  });
  let place = from;
  let left = limit;
  return {
    async next() {
      const page = await read(place);
      const rows = page.rows.slice(0, left);
      left -= rows.length;
      if (rows.length < page.rows.length) return part(rows, endAt(rows.at(-1)!.place, true));
      // A cursor that lies further on than this export went stays where it is.
      if (page.next === null) return part(rows, endAt(compareKeys(place, end) > 0 ? place : end, false));
      place = page.next;
      const isOver = left === 0 || now() - begunAt > MAX_ANSWER_MS;
      return part(rows, isOver ? endAt(place, true) : null);
    },
  };

  function part(rows: { row: Row }[], isEnd: ExportEnd | null) {
    return { rows: rows.map(({ row }) => row), end: isEnd };
  }
}
