// RFC 9111 §1.2.2: a delta-seconds too large to hold is taken as 2^31.
const MAX_WAIT_MS = 2 ** 31 * 1000;

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const MONTH = `(?<month>${MONTHS.join("|")})`;
const DAY_NAME = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)";
const DAY_NAME_LONG = "(?:Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday)";
const TIME = "(?<hour>[01][0-9]|2[0-3]):(?<minute>[0-5][0-9]):(?<second>[0-5][0-9]|60)";

const IMF_FIXDATE = new RegExp(`^${DAY_NAME}, (?<day>[0-9]{2}) ${MONTH} (?<year>[0-9]{4}) ${TIME} GMT$`);
const RFC_850 = new RegExp(`^${DAY_NAME_LONG}, (?<day>[0-9]{2})-${MONTH}-(?<year>[0-9]{2}) ${TIME} GMT$`);
const ASCTIME = new RegExp(`^${DAY_NAME} ${MONTH} (?<day>[0-9]{2}| [0-9]) ${TIME} (?<year>[0-9]{4})$`);

/**
 * Milliseconds that a `Retry-After` value asks to wait (RFC 9110 §10.2.3: delta-seconds or an
 * HTTP-date), at most 2^31 s; 0 for a date gone by; null when absent or anything else.
 */
export function parseRetryAfter(value: string | null, nowMs: number): number | null {
  if (value === null) return null;
  if (/^[0-9]+$/.test(value)) return Math.min(Number(value) * 1000, MAX_WAIT_MS);
  const dateMs = parseHttpDate(value, nowMs);
  if (dateMs === null) return null;
  return Math.min(Math.max(dateMs - nowMs, 0), MAX_WAIT_MS);
}

/**
 * The three forms of RFC 9110 §5.6.7, by their grammar. `Date.parse` is of no use here: it takes
 * "120" for a year. Day names are not compared with the date, which the two-digit year leaves open.
 */
function parseHttpDate(text: string, nowMs: number): number | null {
  const match = IMF_FIXDATE.exec(text) ?? RFC_850.exec(text) ?? ASCTIME.exec(text);
  const part = match?.groups;
  if (part === undefined) return null;
  const digits = part["year"] ?? "";
  const year = digits.length === 4 ? Number(digits) : fullYear(Number(digits), nowMs);
  return dateUtcMs(year, MONTHS.indexOf(part["month"] ?? ""), Number(part["day"]), part);
}

/** RFC 9110 §5.6.7: more than 50 years ahead means the latest past year with the same two digits. */
function fullYear(twoDigits: number, nowMs: number): number {
  const earliest = new Date(nowMs).getUTCFullYear() - 49;
  return earliest + ((twoDigits - (earliest % 100) + 100) % 100);
}

function dateUtcMs(year: number, month: number, day: number, time: Record<string, string>): number | null {
  // Date.UTC rolls 30 February over into March instead of refusing it.
  const midnightMs = Date.UTC(year, month, day);
  if (new Date(midnightMs).getUTCDate() !== day) return null;
  const minutes = Number(time["hour"]) * 60 + Number(time["minute"]);
  return midnightMs + (minutes * 60 + Number(time["second"])) * 1000;
}
