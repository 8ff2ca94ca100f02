import fc from "fast-check";
import { expect, test } from "vitest";
import { lifecycleDays, retentionClassDays, retentionMs, retentionPrefix } from "../../../src/core/retention.ts";

const SEED = { seed: 20_272, numRuns: 500 };
const DAY_MS = 86_400_000;
const CLASSES_DAYS = [1, 3, 7, 14, 30, 60, 90, 180, 365];

const retentionDays = fc.integer({ min: 1, max: 365 });
/** As far as a policy's `max_age_seconds` goes, whole days and fractions of seconds among them. */
const maxAges = fc.array(
  fc.oneof(
    fc.integer({ min: 1, max: 30 }).map((days) => days * 86_400),
    fc.double({ min: 1, max: 2_592_000, noNaN: true }),
  ),
  { maxLength: 5 },
);

function neededMs(days: number, maxAgesSeconds: number[]): number {
  return Math.max(days * DAY_MS, ...maxAgesSeconds.map((seconds) => seconds * 1000 + DAY_MS));
}

test("an event is kept as long as was asked, and outlives the window of each of its deliveries by a day", () => {
  fc.assert(
    fc.property(retentionDays, maxAges, (days, maxAgesSeconds) => {
      const keptMs = retentionMs(retentionClassDays(days, maxAgesSeconds));
      // An hour of a millisecond for the rounding of fractions.
      expect(keptMs + 1e-3).toBeGreaterThanOrEqual(neededMs(days, maxAgesSeconds));
    }),
    SEED,
  );
});

test("the class is the shortest that does", () => {
  fc.assert(
    fc.property(retentionDays, maxAges, (days, maxAgesSeconds) => {
      const classDays = retentionClassDays(days, maxAgesSeconds);
      expect(CLASSES_DAYS).toContain(classDays);
      const shorter = CLASSES_DAYS[CLASSES_DAYS.indexOf(classDays) - 1];
      if (shorter !== undefined) expect(shorter * DAY_MS).toBeLessThan(neededMs(days, maxAgesSeconds));
    }),
    SEED,
  );
});

test.each([
  [1, [], 1],
  [2, [], 3],
  [30, [], 30],
  [31, [], 60],
  [365, [], 365],
  [1, [1], 3],
  [1, [2 * 86_400], 3],
  [1, [2 * 86_400 + 1], 7],
  [1, [259_200], 7],
  [1, [60, 13 * 86_400, 3_600], 14],
  [7, [2_592_000], 60],
])("kept for %i days and owing windows of %j seconds: class %i", (days, maxAgesSeconds, classDays) => {
  expect(retentionClassDays(days, maxAgesSeconds)).toBe(classDays);
});

test("a bucket's rule outlives every row of its class by the time to the next, and prefixes do not contain each other", () => {
  expect(CLASSES_DAYS.map(lifecycleDays)).toEqual([3, 7, 14, 30, 60, 90, 180, 365, 455]);
  const prefixes = CLASSES_DAYS.map(retentionPrefix);
  for (const prefix of prefixes) expect(prefixes.filter((other) => other.startsWith(prefix))).toEqual([prefix]);
});
