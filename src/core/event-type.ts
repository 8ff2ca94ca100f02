import { ok, refuse, type Result } from "./result.ts";

const MAX_LENGTH = 128;
const SEGMENT = /^[A-Za-z0-9_-]+$/;
const OPERATIONAL_PREFIX = "hooklane.";

/** What the relay itself tells of. A new one goes here, and into docs/contract.md. */
export const OPERATIONAL_EVENT_TYPES = [
  "hooklane.delivery.dead_letter",
  "hooklane.endpoint.disabled",
  "hooklane.endpoint.failing",
] as const;
export type OperationalEventType = (typeof OPERATIONAL_EVENT_TYPES)[number];

/** Every pattern under `hooklane.` that matches something: there are few, so SQL can ask for them by name. */
export const OPERATIONAL_PATTERNS: ReadonlySet<string> = new Set(OPERATIONAL_EVENT_TYPES.flatMap(patternsMatching));

/** Of the relay itself: an operational event, or a test send. */
export function isOperational(eventType: string): boolean {
  return eventType.startsWith(OPERATIONAL_PREFIX);
}

/** A type a producer may publish: segments of `[A-Za-z0-9_-]` joined by dots, ≤ 128 characters, not under `hooklane.`. */
export function isEventType(text: string): boolean {
  return text.length <= MAX_LENGTH && !isOperational(text) && text.split(".").every(isSegment);
}

/**
 * Checks an event type pattern: the grammar of a type, in which whole segments may be `*`. One under `hooklane.` that no event
 * of the relay's own matches is `no_such_operational_event`: nothing is accepted and ignored.
 */
export function parseEventTypePattern(text: string): Result<string, "malformed_pattern" | "no_such_operational_event"> {
  const isWellFormed =
    text.length <= MAX_LENGTH && text.split(".").every((segment) => segment === "*" || isSegment(segment));
  if (!isWellFormed) return refuse("malformed_pattern");
  if (isOperational(text) && !OPERATIONAL_PATTERNS.has(text)) return refuse("no_such_operational_event");
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
  const isForOperational = isOperational(pattern);
  return (eventType) => {
    if (!isForOperational && isOperational(eventType)) return false;
    const found = eventType.split(".");
    const fits = isOpenEnded ? found.length >= segments.length : found.length === segments.length;
    return fits && segments.every((segment, i) => segment === "*" || segment === found[i]);
  };
}

/** The patterns that match a type and begin as it does: the inverse of `compilePattern` for one type. */
export function patternsMatching(eventType: string): string[] {
  const [first, ...rest] = eventType.split(".");
  const openEnded: string[] = [];
  let whole = [first!];
  for (const [i, segment] of rest.entries()) {
    if (i < rest.length - 1) openEnded.push(...whole.map((head) => `${head}.*`));
    whole = whole.flatMap((head) => [`${head}.${segment}`, `${head}.*`]);
  }
  return [...openEnded, ...whole];
}

function isSegment(text: string): boolean {
  return SEGMENT.test(text);
}
