import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { addCounts, observed, seriesOf, type Counts } from "../../../src/core/counts.ts";
import { exposition } from "../../../src/core/exposition.ts";
import {
  ACK,
  ACK_BOUNDS,
  ATTEMPTS,
  countedFamilies,
  ENDED,
  LAG,
  LAG_BOUNDS,
} from "../../../src/core/metric-families.ts";
import { ERROR_CLASSES, FINAL_OUTCOMES, OUTCOME_CLASSES } from "../../../src/core/outcome.ts";
import { parseExposition } from "../../support/exposition.ts";

const read = (counts: Counts) => parseExposition(exposition(countedFamilies(counts)));

test("whatever was counted is text that a strict reader takes, with every number in its place", () => {
  const attempt = fc
    .tuple(fc.constantFrom(...OUTCOME_CLASSES), fc.constantFrom("", ...ERROR_CLASSES))
    .map((labels) => seriesOf(ATTEMPTS, ...labels));
  const end = fc
    .tuple(fc.constantFrom("succeeded", "dead_letter", "failed", "expired"), fc.constantFrom(...FINAL_OUTCOMES))
    .map((labels) => seriesOf(ENDED, ...labels));
  fc.assert(
    fc.property(fc.dictionary(fc.oneof(attempt, end), fc.nat()), fc.array(fc.nat(4_000_000)), (counters, lags) => {
      const counts: Counts = { ...counters };
      for (const ms of lags) addCounts(counts, observed(LAG, LAG_BOUNDS, ms));
      const samples = read(counts);
      for (const [series, count] of Object.entries(counters)) {
        const [family, first, second] = series.split(" ");
        const [a, b] = family === ATTEMPTS ? ["outcome_class", "error_class"] : ["status", "final_outcome"];
        expect(samples.get(`${family}{${a}="${first}",${b}="${second}"}`)).toBe(count);
      }
      expect(samples.get(`${LAG}_count`)).toBe(lags.length);
      expect(samples.get(`${LAG}_sum`)).toBeCloseTo(lags.reduce((sum, ms) => sum + ms, 0) / 1_000);
      for (const bound of LAG_BOUNDS) {
        const within = lags.filter((ms) => ms <= bound * 1_000).length;
        expect(samples.get(`${LAG}_bucket{le="${bound}"}`)).toBe(within);
      }
    }),
  );
});

test("a duration on a bound is within it, and one beyond all is in +Inf alone", () => {
  const counts = observed(ACK, ACK_BOUNDS, 10);
  addCounts(counts, observed(ACK, ACK_BOUNDS, 11_000));
  addCounts(counts, observed(ACK, ACK_BOUNDS, -5));
  const samples = read(counts);
  expect(samples.get(`${ACK}_bucket{le="0.01"}`)).toBe(2);
  expect(samples.get(`${ACK}_bucket{le="10"}`)).toBe(2);
  expect(samples.get(`${ACK}_bucket{le="+Inf"}`)).toBe(3);
  expect(samples.get(`${ACK}_sum`)).toBe(11.01);
});

test("counts of a version with other bounds and other families are kept in what holds them", () => {
  const samples = read({
    [`${LAG} le 0.7`]: 3,
    [`${LAG} le 9999`]: 1,
    [`${LAG} sum_ms`]: 5_000,
    "hooklane_later_total a": 4,
  });
  expect(samples.get(`${LAG}_bucket{le="0.5"}`)).toBe(0);
  expect(samples.get(`${LAG}_bucket{le="1"}`)).toBe(3);
  expect(samples.get(`${LAG}_count`)).toBe(4);
  expect([...samples.keys()].filter((name) => name.startsWith("hooklane_later"))).toEqual([]);
});

describe("the text", () => {
  test("escapes what a label or a help may hold", () => {
    const text = exposition([
      { name: "a", help: 'back\\slash\n"quoted"', type: "gauge", samples: [{ labels: { x: 'a\\"\n' }, value: 1 }] },
    ]);
    expect(text).toBe('# HELP a back\\\\slash\\n"quoted"\n# TYPE a gauge\na{x="a\\\\\\"\\n"} 1\n');
    expect(parseExposition(text).size).toBe(1);
  });

  test("leaves out a family of which nothing is known", () => {
    expect(exposition([{ name: "a", help: "a", type: "gauge", samples: [] }])).toBe("");
  });

  test.each([
    ["a line without an end", "# HELP a a\n# TYPE a gauge\na 1"],
    ["a sample of nothing", "a 1\n"],
    ["a sample twice", "# HELP a a\n# TYPE a gauge\na 1\na 2\n"],
    ["a counter without _total", "# HELP a a\n# TYPE a counter\na 1\n"],
    ["a label without quotes", "# HELP a a\n# TYPE a gauge\na{b=c} 1\n"],
    [
      "buckets that fall",
      '# HELP a a\n# TYPE a histogram\na_bucket{le="1"} 2\na_bucket{le="+Inf"} 1\na_sum 1\na_count 1\n',
    ],
    ["a type twice", "# HELP a a\n# TYPE a gauge\n# TYPE a gauge\na 1\n"],
  ])("the reader of these tests refuses %s", (_, text) => {
    expect(() => parseExposition(text)).toThrow();
  });
});
