import { parseTime } from "./timestamps.ts";

const DATE = /^(\d{4})-(\d{2})-(\d{2})$/;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
/** One `@`, a name before it and a host of dotted labels behind it, neither with white space: no more can be said of one. */
const EMAIL = /^[^\s@]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){0,10}$/;

/** The formats that are checked; a schema that names another is refused, so that none is passed over. */
export const FORMATS: ReadonlyMap<string, (text: string) => boolean> = new Map([
  ["date-time", (text) => text.length <= 64 && parseTime(text).ok],
  ["date", isDate],
  ["email", (text) => text.length <= 254 && EMAIL.test(text)],
  ["uri", (text) => text.length <= 8_192 && URL.canParse(text)],
  ["uuid", (text) => UUID.test(text)],
]);

function isDate(text: string): boolean {
  const [, year, month, day] = DATE.exec(text) ?? [];
  if (year === undefined) return false;
  const date = new Date(Date.UTC(2000, Number(month) - 1, Number(day)));
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
  return date.getUTCMonth() === Number(month) - 1 && date.getUTCDate() === Number(day);
}
