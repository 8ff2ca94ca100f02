import { formatTime } from "../../core/timestamps.ts";

export function presentTime(timeMs: number | null): string | null {
  return timeMs === null ? null : formatTime(timeMs);
}
