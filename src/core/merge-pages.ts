/**
 * Merges the pages of several walks over disjoint rows. `compare` orders newest first. What lies behind the point where any
 * walk stopped looking is left for the next page.
 */
export function mergePages<Row, Key>(
  pages: { rows: Row[]; stoppedAt: Key | null }[],
  keyOf: (row: Row) => Key,
  compare: (a: Key, b: Key) => number,
  limit: number,
): { rows: Row[]; next: Key | null } {
  const stops = pages.flatMap(({ stoppedAt }) => (stoppedAt === null ? [] : [stoppedAt]));
  const stop = stops.toSorted(compare)[0] ?? null;
  const rows = pages
    .flatMap((page) => page.rows)
    .filter((row) => stop === null || compare(keyOf(row), stop) <= 0)
    .toSorted((a, b) => compare(keyOf(a), keyOf(b)));
  if (rows.length > limit) return { rows: rows.slice(0, limit), next: keyOf(rows[limit - 1]!) };
  return { rows, next: stop };
}
