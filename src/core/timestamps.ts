import { ok, refuse, type Result } from "./result.ts";

// RFC 3339 section 5.6 `date-time`. Its letters are case-insensitive; a space for the `T` is not part of the grammar.
const DATE_TIME =
  /^(\d{4})-(\d{2})-(\d{2})[Tt]([01]\d|2[0-3]):([0-5]\d):([0-5]\d)(?:\.(\d+))?(?:[Zz]|([+-])([01]\d|2[0-3]):([0-5]\d))$/;
/** The last moment that has a form. */
export const MAX_TIME_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/** Unix milliseconds (1970 to 9999) as RFC 3339 UTC with milliseconds: the one form of time in answers and headers. */
export function formatTime(timeMs: number): string {
  return new Date(timeMs).toISOString();
}

/**
 * An RFC 3339 date-time as Unix milliseconds. Any offset; fractions of a millisecond are cut off. Refused: days that are
 * not in the calendar, leap seconds (`:60` has no Unix time of its own), instants outside 1970 to 9999 UTC.
 */
export function parseTime(text: string): Result<number, "malformed_time"> {
  const match = DATE_TIME.exec(text);
  if (!match) return refuse("malformed_time");
  const [, year, month, day, hour, minute, second, fraction = "", sign, offsetHours = "0", offsetMinutes = "0"] = match;

  // Date.UTC reads years 0 to 99 as 1900 to 1999, so the written year is checked too.
  if (Number(year) < 1970) return refuse("malformed_time");
  const midnightMs = Date.UTC(Number(year), Number(month) - 1, Number(day));
  const isRealDay = new Date(midnightMs).toISOString().startsWith(`${year}-${month}-${day}`);
  if (!isRealDay) return refuse("malformed_time");

  const clockSeconds = Number(hour) * 3600 + Number(minute) * 60 + Number(second);
  const fractionMs = Number(fraction.slice(0, 3).padEnd(3, "0"));
  const offsetSeconds = (Number(offsetHours) * 3600 + Number(offsetMinutes) * 60) * (sign === "-" ? -1 : 1);
  const timeMs = midnightMs + (clockSeconds - offsetSeconds) * 1000 + fractionMs;
  return timeMs >= 0 && timeMs <= MAX_TIME_MS ? ok(timeMs) : refuse("malformed_time");
}
