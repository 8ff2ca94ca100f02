import { z } from "zod";
import { isEventType, isOperational, OPERATIONAL_PATTERNS, parseEventTypePattern } from "../core/event-type.ts";
import { checkFilter } from "../core/filter/filter.ts";
import { MAX_FILTER_LENGTH } from "../core/filter/language.ts";
import { locate } from "../core/filter/source.ts";
import { parseTime } from "../core/timestamps.ts";

/** A name for people: 1–128 characters, no control characters (a NUL breaks SQL tools) and no lone surrogates. */
export const DisplayName = z
  .string()
  .regex(/^[^\p{Cc}\p{Cs}]{1,128}$/u, "must be 1 to 128 characters, none of them a control character");

/** What the predicates of core/event-type say, as the document can show it. */
export const EVENT_TYPE_REGEX = "^(?!hooklane\\.)[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*$";
const PUBLISHABLE_REGEX = "^(?!hooklane\\.)([A-Za-z0-9_-]+|\\*)(\\.([A-Za-z0-9_-]+|\\*))*$";
const OPERATIONAL_REGEX = [...OPERATIONAL_PATTERNS].map((text) => text.replaceAll(/[.*]/g, "\\$&")).join("|");

/** A type that producers publish, in the grammar of `core/event-type`. */
export const EventTypeName = z
  .string()
  .refine(isEventType, {
    message: "must be segments of letters, digits, _ and - joined by dots, at most 128 characters, not under hooklane.",
  })
  .meta({ pattern: EVENT_TYPE_REGEX, maxLength: 128 });

/** Of a payload. */
export const SchemaVersion = z.int().min(1).max(2_147_483_647);

const MALFORMED_PATTERN = "must be segments of letters, digits, _ and -, or *, joined by dots, at most 128 characters";

/** A pattern of event types, in the grammar of `core/event-type`. */
export const EventTypePattern = z
  .string()
  .superRefine((text, context) => {
    const parsed = parseEventTypePattern(text);
    if (parsed.ok) return;
    context.addIssue(
      parsed.error === "malformed_pattern"
        ? { code: "custom", message: MALFORMED_PATTERN }
        : { code: "custom", message: "matches no event of the relay's own", params: { notSupported: true } },
    );
  })
  .meta({ pattern: `${PUBLISHABLE_REGEX}|^(${OPERATIONAL_REGEX})$`, maxLength: 128 });

/** A pattern of what a source may publish, which is nothing of the relay's own. */
export const PublishablePattern = z
  .string()
  .refine((text) => !isOperational(text), "must not be under hooklane., which is the relay's own")
  .refine((text) => isOperational(text) || parseEventTypePattern(text).ok, MALFORMED_PATTERN)
  .meta({ pattern: PUBLISHABLE_REGEX, maxLength: 128 });

/** A filter that compiles, or where it does not. */
export const FilterSource = z
  .string()
  .superRefine((source, context) => {
    const fault = checkFilter(source);
    if (fault === null) return;
    const position = locate(source, fault.position);
    const message = `${fault.message} (line ${position.line}, column ${position.column})`;
    context.addIssue({ code: "custom", message, params: { position } });
  })
  .meta({ minLength: 1, maxLength: MAX_FILTER_LENGTH });

/** An RFC 3339 time as milliseconds since 1970 UTC. */
export const Time = z
  .string()
  .transform((text, context) => {
    const time = parseTime(text);
    if (time.ok) return time.value;
    context.addIssue({ code: "custom", message: "must be an RFC 3339 time, as in 2026-01-31T12:00:00.000Z" });
    return z.NEVER;
  })
  .meta({ format: "date-time" });
