/**
 * What is counted for `/metrics`: whole numbers by series, so that sums of them are exact. A series is its family's name and the
 * values of its labels, separated by spaces, none of which holds one. Of a histogram there are its buckets, each for itself, and the
 * sum of what was observed, in milliseconds.
 */
export type Counts = Record<string, number>;

/** What one isolate has counted since its batch before: given again under the same number, it is the same batch. */
export interface CountBatch {
  number: number;
  counts: Counts;
}

export function seriesOf(family: string, ...labels: string[]): string {
  return [family, ...labels].join(" ");
}

export function addCounts(into: Counts, more: Counts): void {
  for (const [series, count] of Object.entries(more)) into[series] = (into[series] ?? 0) + count;
}

/** One observation of a duration in a histogram with these upper bounds, in seconds, rising. */
export function observed(family: string, boundsSeconds: readonly number[], durationMs: number): Counts {
  const ms = Math.max(0, Math.round(durationMs));
  const bound = boundsSeconds.find((seconds) => ms <= seconds * 1_000);
  return { [seriesOf(family, "le", String(bound ?? "+Inf"))]: 1, [seriesOf(family, "sum_ms")]: ms };
}
