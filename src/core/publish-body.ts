import { isUtf8, MAX_JSON_DEPTH, readJson, scanJson, type JsonSpan } from "./json-span.ts";
import { ok, refuse, type Result } from "./result.ts";

/**
 * One event as it stands in a publish request. `fields` holds every member but the payload, decoded, on an object
 * without a prototype (a member named `__proto__` is a member like any other). `payload` is a view of the request's own
 * bytes, exactly as published; null when the member is absent, the four bytes `null` when it is null.
 */
export type PublishBody = { fields: Record<string, unknown>; payload: Uint8Array | null };

type Fault<Reason> = { reason: Reason; path?: string; offset?: number };

type EventReason =
  | "invalid_utf8"
  | "invalid_json"
  | "not_an_object"
  | "too_deep"
  | "duplicate_field"
  | "fields_too_large";

type BatchReason = "missing_events" | "no_events" | "too_many_events" | "unknown_field";

/** `path` is a key of the event, cut at 128 characters; `offset` counts bytes from the start of the whole request. */
export type PublishBodyError = Fault<EventReason>;

/** What sinks a whole batch. `missing_events`: there is no member `events`, or it is not an array. */
export type BatchBodyError = Fault<EventReason | BatchReason>;

/** Bytes of all members but the payload, keys included; they are decoded, so they must stay small. */
export const MAX_FIELD_BYTES = 64 * 1024;

/** Keys come back in error messages. */
const MAX_PATH_LENGTH = 128;

/** The payload may be as deep as one published raw: the event's own braces are one level more. */
const MAX_EVENT_DEPTH = MAX_JSON_DEPTH + 1;

/**
 * An event of a batch that is too deep is refused alone, so the batch as a whole is scanned deeper than any event may
 * be; past this the request is refused, since the scan must remember every open bracket.
 */
const MAX_BATCH_DEPTH = 10_000;

const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];
const LINE_FEED = 0x0a;

/**
 * Takes one event, `{ "type", "payload", … }`, out of a request body; a leading BOM is passed over. Only the shape is
 * judged: fields are neither required nor validated here, and the payload's size is the caller's to limit.
 */
export function parsePublishBody(body: Uint8Array): Result<PublishBody, PublishBodyError> {
  if (!isUtf8(body)) return refuse({ reason: "invalid_utf8" });
  return parseEvent(body, { start: startOfText(body), end: body.length });
}

/**
 * Takes the events out of `{ "events": [ … ] }`, in order. An element that is no object, repeats a field, or is too deep
 * or too large is an error in its own place; anything that is not JSON sinks the request, since no boundary between
 * events can then be trusted.
 */
export function parseBatchBody(
  body: Uint8Array,
  maxEvents: number,
): Result<Result<PublishBody, PublishBodyError>[], BatchBodyError> {
  if (!isUtf8(body)) return refuse({ reason: "invalid_utf8" });
  const events = findEvents(body);
  if (!events.ok) return events;

  const elements: JsonSpan[] = [];
  let count = 0;
  const { start, end } = events.value;
  const scan = scanJson(
    body.subarray(start, end),
    (item) => {
      count++;
      if (count <= maxEvents) elements.push(item.value);
    },
    MAX_BATCH_DEPTH,
  );
  if (!scan.ok) return refuse(faultFrom(scan.error, start));
  if (scan.value !== "array") return refuse({ reason: "missing_events", path: "events" });
  if (count === 0) return refuse({ reason: "no_events", path: "events" });
  if (count > maxEvents) return refuse({ reason: "too_many_events", path: "events" });
  return ok(elements.map((span) => parseEvent(body, { start: start + span.start, end: start + span.end })));
}

/**
 * Takes the events out of NDJSON: one a line (LF or CRLF), blank lines passed over, a BOM allowed before the first. A bad
 * line, even one that is not UTF-8, is an error in its own place.
 */
export function parseNdjsonBody(
  body: Uint8Array,
  maxEvents: number,
): Result<Result<PublishBody, PublishBodyError>[], BatchBodyError> {
  const results: Result<PublishBody, PublishBodyError>[] = [];
  let start = startOfText(body);
  while (start < body.length) {
    const lineFeed = body.indexOf(LINE_FEED, start);
    const end = lineFeed === -1 ? body.length : lineFeed;
    if (!isBlank(body, start, end)) {
      if (results.length === maxEvents) return refuse({ reason: "too_many_events" });
      const line = body.subarray(start, end);
      results.push(isUtf8(line) ? parseEvent(body, { start, end }) : refuse({ reason: "invalid_utf8", offset: start }));
    }
    start = end + 1;
  }
  return results.length === 0 ? refuse({ reason: "no_events" }) : ok(results);
}

/** `body` is the whole request, so that the offsets of errors are the producer's. */
function parseEvent(body: Uint8Array, span: JsonSpan): Result<PublishBody, PublishBodyError> {
  const text = body.subarray(span.start, span.end);
  const fields: Record<string, unknown> = Object.create(null);
  let payload = null as Uint8Array | null;
  let fault = null as PublishBodyError | null;
  let fieldBytes = 0;

  const scan = scanJson(
    text,
    ({ key, value }) => {
      if (key === null || fault !== null) return;
      // A key is weighed before it is decoded; `"payload"` itself, however escaped, fits in the limit.
      if (key.end - key.start > MAX_FIELD_BYTES) {
        fault = { reason: "fields_too_large" };
        return;
      }
      const name = readJson(text, key) as string;
      if (name === "payload" ? payload !== null : Object.hasOwn(fields, name)) {
        fault = { reason: "duplicate_field", path: pathOf(name), offset: span.start + key.start };
      } else if (name === "payload") {
        payload = text.subarray(value.start, value.end);
      } else {
        fieldBytes += value.end - key.start;
        if (fieldBytes > MAX_FIELD_BYTES) fault = { reason: "fields_too_large" };
        else fields[name] = readJson(text, value);
      }
    },
    MAX_EVENT_DEPTH,
  );
  if (!scan.ok) return refuse(faultFrom(scan.error, span.start));
  if (scan.value !== "object") return refuse({ reason: "not_an_object" });
  return fault === null ? ok({ fields, payload }) : refuse(fault);
}

/** Checks the whole body and finds the span of its one allowed member. */
function findEvents(body: Uint8Array): Result<JsonSpan, BatchBodyError> {
  const start = startOfText(body);
  const text = body.subarray(start);
  let events = null as JsonSpan | null;
  let fault = null as BatchBodyError | null;

  const scan = scanJson(
    text,
    ({ key, value }) => {
      if (key === null || fault !== null) return;
      const name = readJson(text, key) as string;
      const offset = start + key.start;
      if (name !== "events") fault = { reason: "unknown_field", path: pathOf(name), offset };
      else if (events !== null) fault = { reason: "duplicate_field", path: name, offset };
      else events = { start: start + value.start, end: start + value.end };
    },
    MAX_BATCH_DEPTH,
  );
  if (!scan.ok) return refuse(faultFrom(scan.error, start));
  if (scan.value !== "object") return refuse({ reason: "not_an_object" });
  if (fault !== null) return refuse(fault);
  return events === null ? refuse({ reason: "missing_events", path: "events" }) : ok(events);
}

function faultFrom(error: { reason: "invalid_json" | "too_deep"; offset: number }, base: number): PublishBodyError {
  return { reason: error.reason, offset: base + error.offset };
}

function startOfText(body: Uint8Array): number {
  return BYTE_ORDER_MARK.every((byte, index) => body[index] === byte) ? BYTE_ORDER_MARK.length : 0;
}

/** Without a view of the line: a request may hold eight million empty ones. */
function isBlank(body: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    const byte = body[at];
    if (byte !== 0x20 && byte !== 0x09 && byte !== 0x0d) return false;
  }
  return true;
}

function pathOf(key: string): string {
  return key.slice(0, MAX_PATH_LENGTH);
}
