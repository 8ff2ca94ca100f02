const DAY_SECONDS = 86_400;

/** Object prefixes that a bucket's lifecycle rules can tell apart, in days. */
export const RETENTION_CLASSES_DAYS = [1, 3, 7, 14, 30, 60, 90, 180, 365];
/** What follows the last class, for the rule of its objects. */
const BEYOND_LAST_CLASS_DAYS = 455;

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

/** What the key of an object of this class begins with. */
export function retentionPrefix(classDays: number): string {
  return `${classDays}d/`;
}

/**
 * After how many days a bucket's own rule deletes objects of a class: one class later than any row can refer to them. The
 * watchdog deletes them long before; the rule is for objects that no row refers to.
 */
export function lifecycleDays(classDays: number): number {
  return RETENTION_CLASSES_DAYS.find((days) => days > classDays) ?? BEYOND_LAST_CLASS_DAYS;
}
