import { mergePages } from "../../core/merge-pages.ts";
import { isTowardNewer, placesAround, type Place } from "../../core/two-way.ts";
import { longLook, pageStatements, type Filter, type Listed, type Reach, type Walk } from "./paging.ts";
import type { Row } from "./read-rows.ts";

/** Rows newest first, and where the pages on either side begin. */
export interface TwoWayRows<T, Key> {
  rows: T[];
  older: Place<Key> | null;
  newer: Place<Key> | null;
}

/** Rows in the direction of the page, and how far it looked, null when there is nothing behind that. */
export interface Part<T, Key> {
  rows: T[];
  rest: Key | null;
}

/** How rows of the ledger become what is listed. */
export interface Reading<T, Key> {
  row(row: Row): T;
  key(row: Row): Key;
  keyOf(row: T): Key;
  /** Newest first. */
  compare(a: Key, b: Key): number;
}

export interface Page<Key> {
  tenantId: string;
  from: Place<Key> | null;
  limit: number;
  isLong: boolean;
  reach: Reach;
}

/** A page in one short look, or that and a longer one where it was not full after the first. */
export async function readTwoWay<T, Key>(
  { keyOf }: Reading<T, Key>,
  page: Omit<Page<Key>, "isLong">,
  read: (page: Page<Key>) => Promise<Part<T, Key>>,
): Promise<TwoWayRows<T, Key>> {
  const toNewer = isTowardNewer(page.from);
  let { rows, rest } = await read({ ...page, isLong: false });
  if (rest !== null && rows.length < page.limit) {
    const from: Place<Key> = { key: rest, side: toNewer ? "newer" : "older" };
    const more = await read({ ...page, from, limit: page.limit - rows.length, isLong: true });
    rows = [...rows, ...more.rows];
    rest = more.rest;
  }
  const newestFirst = toNewer ? rows.toReversed() : rows;
  return { rows: newestFirst, ...placesAround(page.from, newestFirst.map(keyOf), rest) };
}

/** The statements of `readWalks`, of which `readParts` reads the results. */
export function walkStatements(
  db: D1Database,
  listed: Listed,
  walks: Walk[],
  filters: Filter[],
  page: Page<unknown>,
): D1PreparedStatement[] {
  return walks.flatMap((walk) => {
    const look = page.isLong ? longLook(page.reach, walk, filters, walks.length) : page.reach.firstLook;
    return pageStatements(db, listed, walk, filters, { ...page, look, isTowardNewer: isTowardNewer(page.from) });
  });
}

/** Merges what walks over disjoint rows found, and `others`, which are complete. */
export function readParts<T, Key>(
  reading: Reading<T, Key>,
  results: D1Result<Row>[],
  page: Page<Key>,
  others: T[] = [],
): Part<T, Key> {
  const walked = Array.from({ length: results.length / 2 }, (_, i) => ({
    rows: results[2 * i]!.results.map(reading.row),
    stoppedAt: results[2 * i + 1]!.results.map(reading.key)[0] ?? null,
  }));
  const compare = isTowardNewer(page.from) ? (a: Key, b: Key) => reading.compare(b, a) : reading.compare;
  const pages = [...walked, { rows: others, stoppedAt: null }];
  const { rows, next } = mergePages(pages, reading.keyOf, compare, page.limit);
  return { rows, rest: next };
}

export async function readWalks<T, Key>(
  db: D1Database,
  listed: Listed,
  reading: Reading<T, Key>,
  walks: Walk[],
  filters: Filter[],
  page: Page<Key>,
): Promise<Part<T, Key>> {
  if (walks.length === 0) return { rows: [], rest: null };
  return readParts(reading, await db.batch<Row>(walkStatements(db, listed, walks, filters, page)), page);
}
