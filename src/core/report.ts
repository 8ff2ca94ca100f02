import { ok, refuse, type Result } from "./result.ts";

const UNITS_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const WINDOW = /^([1-9]\d{0,7})([smhd])$/;
/** As long as anything is kept. */
const MAX_WINDOW_MS = 365 * UNITS_MS.d;

export const HOUR_MS: number = UNITS_MS.h;

/** What a report is about: from when on, and the moment it is made. `from` is null where it has no beginning. */
export interface ReportWindow {
  from: number | null;
  until: number;
}

/** What a report answers. */
export interface Report<Row> {
  data: Row[];
  window: ReportWindow;
  /** Whether everything the window holds was looked at. */
  complete: boolean;
  /** From when on everything was; null where that is from the beginning, or where nobody can say. */
  completeFrom: number | null;
}

/** A length of time back from now, such as `15m`, `1h` or `7d`, in milliseconds. At most 365 days. */
export function parseReportWindow(text: string): Result<number, "malformed_window"> {
  const match = WINDOW.exec(text);
  if (!match) return refuse("malformed_window");
  const lengthMs = Number(match[1]) * UNITS_MS[match[2] as keyof typeof UNITS_MS];
  return lengthMs <= MAX_WINDOW_MS ? ok(lengthMs) : refuse("malformed_window");
}

/** The window that ends now; nothing is older than 1970. */
export function reportWindow(now: number, lengthMs: number): { from: number; until: number } {
  return { from: Math.max(0, now - lengthMs), until: now };
}
