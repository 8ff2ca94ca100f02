import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseRetryAfter } from "../../../src/core/retry-after.ts";

const SEED = { seed: 20_262, numRuns: 200 };
/** The moment of RFC 9110's own examples: Sun, 06 Nov 1994 08:49:37 GMT. */
const RFC_MOMENT = Date.UTC(1994, 10, 6, 8, 49, 37);
const CLAMP_MS = 2 ** 31 * 1000;

describe("delta-seconds", () => {
  test("any count of seconds becomes milliseconds", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 31 }), fc.nat(), (seconds, now) => {
        expect(parseRetryAfter(String(seconds), now)).toBe(seconds * 1000);
      }),
      SEED,
    );
    expect(parseRetryAfter("0120", 0)).toBe(120_000);
  });

  test("absurd lengths clamp to a finite wait", () => {
    expect(parseRetryAfter("99999999999", 0)).toBe(CLAMP_MS);
    expect(parseRetryAfter("9".repeat(5_000), 0)).toBe(CLAMP_MS);
  });
});

describe("HTTP dates", () => {
  test.each(["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"])(
    "%s is the wait until then, 0 once it is past",
    (date) => {
      expect(parseRetryAfter(date, RFC_MOMENT - 90_500)).toBe(90_500);
      expect(parseRetryAfter(date, RFC_MOMENT)).toBe(0);
      expect(parseRetryAfter(date, RFC_MOMENT + 1)).toBe(0);
    },
  );

  test("every moment the platform writes is read back exactly", () => {
    const seconds = fc.integer({ min: 0, max: 4_000_000_000 });
    fc.assert(
      fc.property(seconds, fc.integer({ min: 0, max: 100_000 }), (now, wait) => {
        const date = new Date((now + wait) * 1000).toUTCString();
        expect(parseRetryAfter(date, now * 1000)).toBe(wait * 1000);
      }),
      SEED,
    );
  });

  test("a two-digit year is at most 50 years ahead", () => {
    const now = Date.UTC(2026, 0, 1);
    const at = (year: string) => parseRetryAfter(`Monday, 01-Jan-${year} 00:00:00 GMT`, now);
    expect(at("27")).toBe(Date.UTC(2027, 0, 1) - now);
    expect(at("76")).toBe(Date.UTC(2076, 0, 1) - now);
    expect(at("77")).toBe(0);
    const eve = Date.UTC(2099, 11, 31);
    const next = parseRetryAfter("Friday, 01-Jan-00 00:00:00 GMT", eve);
    expect(next).toBe(86_400_000);
  });

  test("a leap second is a moment", () => {
    const now = Date.UTC(2016, 11, 31, 23, 59, 0);
    expect(parseRetryAfter("Sat, 31 Dec 2016 23:59:60 GMT", now)).toBe(60_000);
  });
});

test.each([
  "",
  " ",
  "120abc",
  "-5",
  "+5",
  "1.5",
  "1e3",
  "0x10",
  "120, 60",
  "120s",
  "٣",
  "2026-01-01T00:00:00Z",
  "Jan 1",
  "Sun, 6 Nov 1994 08:49:37 GMT",
  "Sun, 06 Nov 1994 08:49:37 +0000",
  "Sun, 06 Nov 1994 08:49:37 UTC",
  "sun, 06 nov 1994 08:49:37 gmt",
  "Sun, 06 Nov 94 08:49:37 GMT",
  "Sun, 30 Feb 2028 08:49:37 GMT",
  "Sun, 00 Nov 1994 08:49:37 GMT",
  "Sun, 06 Nov 1994 24:00:00 GMT",
  "Sun, 06 Nov 1994 08:60:00 GMT",
  "Sun Nov 6 08:49:37 1994",
  "Sun, 06 Nov 1994 08:49:37 GMT\n",
])("%j is ignored", (value) => {
  expect(parseRetryAfter(value, RFC_MOMENT)).toBeNull();
});

test("an absent header is no wish", () => {
  expect(parseRetryAfter(null, 0)).toBeNull();
});

test("whatever the text, the wait is null or a whole number from 0 to the clamp", () => {
  const nowMs = fc.integer({ min: 0, max: 8e14 });
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[0-9]{1,400}$/)), nowMs, (text, now) => {
      const wait = parseRetryAfter(text, now);
      if (wait === null) return;
      expect(Number.isInteger(wait)).toBe(true);
      expect(wait).toBeGreaterThanOrEqual(0);
      expect(wait).toBeLessThanOrEqual(CLAMP_MS);
    }),
    SEED,
  );
});
