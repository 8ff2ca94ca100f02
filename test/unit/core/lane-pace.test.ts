import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { beginningsOf, maxClaimed, nextStartAt, timesOf, type Turn } from "../../../src/core/lane-pace.ts";

const SEED = { seed: 20_262, numRuns: 300 };
const T0 = 1_790_000_000_000;
const SECOND_MS = 1_000;
const anyStarts = fc
  .array(fc.integer({ min: 0, max: 2_500 }), { maxLength: 60 })
  .map((ages) => ages.map((ms) => T0 - ms).toSorted((a, b) => a - b));

describe("nextStartAt", () => {
  test("without a rate is now", () => {
    expect(nextStartAt(null, [T0, T0, T0], T0)).toBe(T0);
  });

  test("whenever requests are asked for, no more than the rate start in any one second", () => {
    const asks = fc.array(fc.integer({ min: 0, max: 400 }), { maxLength: 120 });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 40 }), asks, (rate, gaps) => {
        let now = T0;
        const starts: number[] = [];
        for (const gap of gaps) {
          now = nextStartAt(rate, starts, now + gap);
          starts.push(now);
        }
        for (const [i, at] of starts.entries()) {
          expect(starts.slice(i).filter((other) => other < at + SECOND_MS).length).toBeLessThanOrEqual(rate);
        }
      }),
      SEED,
    );
  });

  test("asking again at the time it said is granted then, and never sooner", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 40 }), anyStarts, (rate, starts) => {
        const at = nextStartAt(rate, starts, T0);
        expect(nextStartAt(rate, starts, at)).toBe(at);
        if (at > T0) expect(nextStartAt(rate, starts, at - 1)).toBe(at);
      }),
      SEED,
    );
  });

  test.each([1, 3, 10, 50, 333, 1_000])(
    "a thousand queued at %i a second take about as long as they must, with no straggler",
    (rate) => {
      const starts: number[] = [];
      let now = T0;
      for (let n = 0; n < 1_000; n++) starts.push((now = nextStartAt(rate, starts, now)));
      const tookMs = starts.at(-1)! - T0;
      const leastMs = (Math.ceil(1_000 / rate) - 1) * SECOND_MS;
      expect(tookMs).toBeGreaterThanOrEqual(leastMs);
      expect(tookMs).toBeLessThanOrEqual((1_000 / rate) * SECOND_MS * 1.05 + 50);
      const longestGapMs = Math.max(...starts.slice(1).map((at, i) => at - starts[i]!));
      expect(longestGapMs).toBeLessThanOrEqual(1_020);
    },
  );

  test("spreads a second's requests over it rather than making them all at its beginning", () => {
    const starts: number[] = [];
    for (let n = 0; n < 10; n++) starts.push(nextStartAt(10, starts, T0));
    expect(starts.filter((at) => at < T0 + 400).length).toBeLessThanOrEqual(5);
  });

  test("a past second that counts as full lets nothing start before it is over", () => {
    for (const rate of [1, 10, 1_000]) {
      const starts = Array.from({ length: 1_000 }, () => T0);
      expect(nextStartAt(rate, starts, T0 + 1)).toBeGreaterThanOrEqual(T0 + SECOND_MS);
    }
  });
});

describe("maxClaimed", () => {
  test.each([
    [1, 1],
    [4, 1],
    [10, 1],
    [11, 2],
    [200, 20],
    [1_000, 100],
  ])("at %i a second %i may be claimed and not sent", (rate, most) => {
    expect(maxClaimed(rate)).toBe(most);
  });
});

describe("a log of turns", () => {
  const turns: Turn[] = [
    { begunAt: 1, at: 30, stage: "sent" },
    { begunAt: 10, at: 10, stage: "begun" },
    { begunAt: 5, at: 20, stage: "claimed" },
  ];

  test("gives its moments in order, of the stages that are asked for", () => {
    expect(beginningsOf(turns)).toEqual([1, 5, 10]);
    expect(timesOf(turns, "claimed", "sent")).toEqual([20, 30]);
    expect(timesOf(turns, "sent")).toEqual([30]);
  });
});
