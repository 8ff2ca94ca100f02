import fc from "fast-check";
import { expect, test } from "vitest";
import { formatTime, parseTime } from "../../../src/core/timestamps.ts";

const lastMs = Date.UTC(9999, 11, 31, 23, 59, 59, 999);
const timeMs = fc.integer({ min: 0, max: lastMs });
const malformed = { ok: false, error: "malformed_time" };

test("a time is written in UTC with milliseconds, and reads back as itself", () => {
  expect(formatTime(0)).toBe("1970-01-01T00:00:00.000Z");
  expect(formatTime(lastMs)).toBe("9999-12-31T23:59:59.999Z");
  fc.assert(
    fc.property(timeMs, (ms) => {
      expect(parseTime(formatTime(ms))).toEqual({ ok: true, value: ms });
    }),
    { seed: 1 },
  );
});

test("an offset moves the clock and not the instant", () => {
  const offset = fc.integer({ min: -1439, max: 1439 });
  fc.assert(
    fc.property(fc.integer({ min: 10 ** 8, max: lastMs - 10 ** 8 }), offset, (ms, minutes) => {
      const wallClock = formatTime(ms + minutes * 60_000).slice(0, -1);
      const hours = String(Math.floor(Math.abs(minutes) / 60)).padStart(2, "0");
      const rest = String(Math.abs(minutes) % 60).padStart(2, "0");
      expect(parseTime(`${wallClock}${minutes < 0 ? "-" : "+"}${hours}:${rest}`)).toEqual({ ok: true, value: ms });
    }),
    { seed: 1 },
  );
});

test("a text never throws, and is a time only if Date agrees", () => {
  const digits = fc.stringMatching(/^\d{4}-\d\d-\d\d[tT ]\d\d:\d\d:\d\d(\.\d{0,4})?([zZ]|[+-]\d\d:\d\d)$/);
  fc.assert(
    fc.property(fc.oneof(digits, fc.string({ unit: "binary" })), (text) => {
      const parsed = parseTime(text);
      if (parsed.ok) expect(parsed.value).toBe(Date.parse(text.toUpperCase()));
    }),
    { seed: 1, numRuns: 500 },
  );
});

test.each([
  ["1996-12-19T16:39:57-08:00", "1996-12-20T00:39:57.000Z"],
  ["1937-01-01T12:00:27.87+00:20", undefined],
  ["1985-04-12t23:20:50.52z", "1985-04-12T23:20:50.520Z"],
  ["2026-01-02T03:04:05.6789999Z", "2026-01-02T03:04:05.678Z"],
  ["2026-01-02T03:04:05.1Z", "2026-01-02T03:04:05.100Z"],
  ["2026-01-02T03:04:05-00:00", "2026-01-02T03:04:05.000Z"],
  ["2024-02-29T00:00:00Z", "2024-02-29T00:00:00.000Z"],
  ["2000-02-29T00:00:00Z", "2000-02-29T00:00:00.000Z"],
  ["1970-01-01T00:00:00+00:01", undefined],
  ["9999-12-31T23:59:59-00:01", undefined],
  ["2026-01-01T23:59:59+23:59", "2026-01-01T00:00:59.000Z"],
])("%s is %s", (text, expected) => {
  const parsed = parseTime(text);
  expect(parsed.ok ? formatTime(parsed.value) : undefined).toBe(expected);
});

test.each([
  "",
  "now",
  "120",
  "1469922850259",
  "2026-01-02",
  "2026-01-02T03:04Z",
  "2026-01-02 03:04:05Z",
  "2026-01-02T03:04:05",
  "2026-01-02T03:04:05.Z",
  "2026-01-02T03:04:05,5Z",
  "2026-01-02T03:04:05+0100",
  "2026-01-02T03:04:05+01",
  "2026-01-02T03:04:05+24:00",
  "2026-01-02T03:04:05+01:60",
  "2026-01-02T24:00:00Z",
  "2026-01-02T03:60:00Z",
  "2016-12-31T23:59:60Z",
  "2026-00-02T03:04:05Z",
  "2026-13-02T03:04:05Z",
  "2026-01-00T03:04:05Z",
  "2026-01-32T03:04:05Z",
  "2026-02-29T03:04:05Z",
  "2026-04-31T03:04:05Z",
  "2100-02-29T03:04:05Z",
  "0070-01-02T03:04:05Z",
  "1969-12-31T23:59:59Z",
  "+02026-01-02T03:04:05Z",
  "12026-01-02T03:04:05Z",
  " 2026-01-02T03:04:05Z",
  "2026-01-02T03:04:05Z\n",
  "２０２６-01-02T03:04:05Z",
])("%j is no time", (text) => {
  expect(parseTime(text)).toEqual(malformed);
});
