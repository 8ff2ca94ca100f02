const DAY_SECONDS = 86_400;

/** Object prefixes that a bucket's lifecycle rules can tell apart, in days. */
const RETENTION_CLASSES_DAYS = [1, 3, 7, 14, 30, 60, 90, 180, 365];

/**
 * The class, in days, of events that are kept for `retentionDays` and owe deliveries with such windows: an event outlives
 * each of its deliveries by a day at least (contract §7), so that a dead letter never outlives its payload.
 */
export function retentionClassDays(retentionDays: number, maxAgesSeconds: number[]): number {
  const longestSeconds = Math.max(0, ...maxAgesSeconds);
  const neededDays = Math.max(retentionDays, longestSeconds > 0 ? longestSeconds / DAY_SECONDS + 1 : 0);
  return RETENTION_CLASSES_DAYS.find((days) => days >= neededDays) ?? RETENTION_CLASSES_DAYS.at(-1)!;
}

/** Milliseconds from acceptance to `expires_at`. */
export function retentionMs(classDays: number): number {
  return classDays * DAY_SECONDS * 1000;
}
