import { ok, refuse, type Result } from "./result.ts";

const MAX_LENGTH = 128;
const SEGMENT = /^[A-Za-z0-9_-]+$/;
const OPERATIONAL_PREFIX = "hooklane.";

/** A type a producer may publish: segments of `[A-Za-z0-9_-]` joined by dots, ≤ 128 characters, not the relay's own `hooklane.…`. */
export function isEventType(text: string): boolean {
  return text.length <= MAX_LENGTH && !text.startsWith(OPERATIONAL_PREFIX) && text.split(".").every(isSegment);
}

/**
 * Checks an event type pattern: the grammar of a type, in which whole segments may be `*`. Patterns for the relay's own
 * events are `operational_events_not_supported` until those events exist: nothing is accepted and ignored.
 */
export function parseEventTypePattern(
  text: string,
): Result<string, "malformed_pattern" | "operational_events_not_supported"> {
  const isWellFormed =
    text.length <= MAX_LENGTH && text.split(".").every((segment) => segment === "*" || isSegment(segment));
  if (!isWellFormed) return refuse("malformed_pattern");
  if (text.startsWith(OPERATIONAL_PREFIX)) return refuse("operational_events_not_supported");
  return ok(text);
}

/**
 * The test that a (well-formed) pattern stands for. `*` alone matches every type; otherwise `*` is one segment, and as the
 * last segment one or more. Types that begin with `hooklane.` match only patterns that begin so too.
 */
export function compilePattern(pattern: string): (eventType: string) => boolean {
  if (!pattern.includes("*")) return (eventType) => eventType === pattern;
  const segments = pattern.split(".");
  const isOpenEnded = segments.at(-1) === "*";
  const isOperational = pattern.startsWith(OPERATIONAL_PREFIX);
  return (eventType) => {
    if (!isOperational && eventType.startsWith(OPERATIONAL_PREFIX)) return false;
    const found = eventType.split(".");
    const fits = isOpenEnded ? found.length >= segments.length : found.length === segments.length;
    return fits && segments.every((segment, i) => segment === "*" || segment === found[i]);
  };
}

function isSegment(text: string): boolean {
  return SEGMENT.test(text);
}
