import fc from "fast-check";
import { expect, test } from "vitest";
import { parseRetryAfter } from "../../../src/core/retry-after.ts";
import { formatTime, parseTime } from "../../../src/core/timestamps.ts";

const RUNS = { seed: 20261201, numRuns: 3_000 };
const NOW = Date.UTC(2026, 11, 1, 12, 30, 15, 250);
const CLAMP_MS = 2 ** 31 * 1000;
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** By counting: days of a month of the Gregorian calendar, 0 for no month. */
function daysIn(year: number, month: number): number {
  const isLeap = (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
  return [0, 31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month] ?? 0;
}

/** By counting too: whole days from 1 January 1970, also of years before it. */
function daysSince1970(year: number, month: number, day: number): number {
  const before = (y: number) =>
    365 * y + Math.floor((y + 3) / 4) - Math.floor((y + 99) / 100) + Math.floor((y + 399) / 400);
  let days = before(year) - before(1970) + day - 1;
  for (let m = 1; m < month; m++) days += daysIn(year, m);
  return days;
}

const upTo = (max: number) => fc.oneof({ weight: 9, arbitrary: fc.nat(max) }, fc.nat(99));
const two = (value: number) => String(value).padStart(2, "0");
const clock = fc.tuple(upTo(23), upTo(59), upTo(59));
const year = fc.oneof(fc.integer({ min: 1_970, max: 2_100 }), fc.integer({ min: 0, max: 9_999 }));
const day = fc.oneof({ weight: 9, arbitrary: fc.integer({ min: 1, max: 31 }) }, fc.nat(99));
/** A slip of the pen, mostly none. */
const slip = fc.oneof(
  { weight: 19, arbitrary: fc.constant(null) },
  fc.tuple(fc.nat(40), fc.constantFrom("", " ", "0", "x", "-")),
);

function withSlip(text: string, mistake: [number, string] | null): string {
  return mistake === null ? text : text.slice(0, mistake[0]) + mistake[1] + text.slice(mistake[0] + 1);
}

test("an HTTP date in any of its three forms is the wait until then, or ignored when there is no such moment", () => {
  const form = fc.constantFrom("fixdate", "rfc850", "asctime");
  const month = fc.integer({ min: 1, max: 12 });
  fc.assert(
    fc.property(form, year, month, day, clock, (style, y, m, d, [hour, minute, second]) => {
      const time = `${two(hour)}:${two(minute)}:${two(second)}`;
      const name = MONTHS[m - 1]!;
      const fullYear = style === "rfc850" ? 2_026 - 49 + ((((y - (2_026 - 49)) % 100) + 100) % 100) : y;
      const text = {
        fixdate: `Tue, ${two(d)} ${name} ${String(y).padStart(4, "0")} ${time} GMT`,
        rfc850: `Tuesday, ${two(d)}-${name}-${two(y % 100)} ${time} GMT`,
        asctime: `Tue ${name} ${String(d).padStart(2, " ")} ${time} ${String(y).padStart(4, "0")}`,
      }[style];
      const isMoment = d >= 1 && d <= daysIn(fullYear, m) && hour < 24 && minute < 60 && second <= 60;
      const waitMs = ((daysSince1970(fullYear, m, d) * 24 + hour) * 60 + minute) * 60_000 + second * 1_000 - NOW;
      // Years before 100 are nobody's Retry-After: they are past in any reading.
      const expected = isMoment ? Math.min(Math.max(waitMs, 0), CLAMP_MS) : null;
      if (fullYear >= 100) expect([text, parseRetryAfter(text, NOW)]).toEqual([text, expected]);
      else expect([0, null]).toContain(parseRetryAfter(text, NOW));
    }),
    RUNS,
  );
});

test("a number of seconds is just that when it is all digits, and nothing otherwise", () => {
  const digits = fc.stringMatching(/^[0-9]{1,12}$/);
  fc.assert(
    fc.property(digits, slip, (text, mistake) => {
      const given = withSlip(text, mistake);
      const isDigits = given !== "" && [...given].every((letter) => letter >= "0" && letter <= "9");
      expect(parseRetryAfter(given, NOW)).toBe(isDigits ? Math.min(Number(given) * 1_000, CLAMP_MS) : null);
    }),
    RUNS,
  );
});

test("an RFC 3339 time is the moment its parts name, or refused when there is none from 1970 to 9999", () => {
  const zone = fc.oneof(fc.constantFrom("Z", "z"), fc.tuple(fc.constantFrom("+", "-"), upTo(23), upTo(59)));
  const fraction = fc.oneof(fc.constant(""), fc.stringMatching(/^\.[0-9]{1,12}$/));
  fc.assert(
    fc.property(
      year,
      fc.oneof(fc.integer({ min: 1, max: 12 }), fc.nat(99)),
      day,
      clock,
      fraction,
      zone,
      (y, m, d, [hour, minute, second], part, where) => {
        const offset = typeof where === "string" ? where : `${where[0]}${two(where[1])}:${two(where[2])}`;
        const date = `${String(y).padStart(4, "0")}-${two(m)}-${two(d)}`;
        const text = `${date}T${two(hour)}:${two(minute)}:${two(second)}${part}${offset}`;
        const isWritten = d >= 1 && d <= daysIn(y, m) && hour < 24 && minute < 60 && second < 60 && y >= 1_970;
        const isZone = typeof where === "string" || (where[1] < 24 && where[2] < 60);
        const offsetMinutes = typeof where === "string" ? 0 : (where[0] === "-" ? -1 : 1) * (where[1] * 60 + where[2]);
        const ms = Number(`${part.slice(1)}000`.slice(0, 3));
        const moment =
          ((daysSince1970(y, m, d) * 24 + hour) * 60 + minute - offsetMinutes) * 60_000 + second * 1_000 + ms;
        const isWithin = moment >= 0 && moment < daysSince1970(10_000, 1, 1) * 86_400_000;
        const parsed = parseTime(text);
        expect([text, parsed.ok && parsed.value]).toEqual([text, isWritten && isZone && isWithin && moment]);
        if (parsed.ok) expect(parseTime(formatTime(parsed.value))).toEqual(parsed);
      },
    ),
    RUNS,
  );
});
