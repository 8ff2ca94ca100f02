/** What a filter may be, and what it may cost. */

/** Characters of a filter's source. */
export const MAX_FILTER_LENGTH = 2_048;
/** Operators, names, literals and calls, as the parser counts them. */
export const MAX_FILTER_NODES = 400;
/** Parentheses, brackets, arguments and selections within each other. */
export const MAX_FILTER_DEPTH = 32;
/** Elements of one list, or entries of one map, that a filter spells out. */
export const MAX_FILTER_ELEMENTS = 200;

/** Evaluation steps of one filter on one event. */
export const MAX_FILTER_STEPS = 100_000;
/** Of all filters on one event, and on all events of one publish request. */
export const MAX_EVENT_STEPS = 5_000_000;
export const MAX_REQUEST_STEPS = 20_000_000;
/** A string operation costs a step for as many characters as this. */
export const CHARACTERS_PER_STEP = 32;

/** Values of a payload, containers and their members, that a filter can look at. One of 256 KiB never has as many. */
export const MAX_PAYLOAD_VALUES = 262_144;
/** An integer of more digits is a double. */
export const MAX_INTEGER_DIGITS = 64;

/** The fields of `event`. Those that an event need not have are absent where it has not. */
export const EVENT_FIELDS = {
  id: "string",
  type: "string",
  source: "string",
  schema_version: "int",
  ordering_key: "string",
  idempotency_key: "string",
  cause_event_id: "string",
  occurred_at: "string",
  relayed_at: "string",
  content_type: "string",
} as const;
export type EventField = keyof typeof EVENT_FIELDS;
