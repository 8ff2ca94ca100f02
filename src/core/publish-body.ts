import { isJson, isUtf8, MAX_JSON_DEPTH, readJson, scanJson, type JsonSpan } from "./json-span.ts";
import { MAX_VARIANTS } from "./event-variants.ts";
import { ok, refuse, type Result } from "./result.ts";

/**
 * One event as it stands in a publish request. `fields` holds every member but payload and variants, decoded, on an object
 * without a prototype (a member named `__proto__` is a member like any other). `payload` is a view of the request's own
 * bytes, exactly as published; null when the member is absent, the four bytes `null` when it is null.
 */
export type PublishBody = {
  fields: Record<string, unknown>;
  payload: Uint8Array | null;
  /** Its member `variants`, where it has one that is not null. */
  variants?: PublishedVariant[];
};

/** An element of `variants`: its members in the same way. */
export type PublishedVariant = { fields: Record<string, unknown>; payload: Uint8Array | null };

type Fault<Reason> = { reason: Reason; path?: string; offset?: number };

type EventReason =
  | "invalid_utf8"
  | "invalid_json"
  | "not_an_object"
  | "too_deep"
  | "duplicate_field"
  | "malformed_variants"
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

/** So may that of a variant, which stands two levels deeper. */
const MAX_VARIANTS_DEPTH = MAX_EVENT_DEPTH + 2;

/** Variants that are taken apart: one more than any event may have, so that it is known to have too many. */
const MAX_VARIANTS_READ = MAX_VARIANTS + 1;

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
  const parsed = takeApart(body, span, MAX_EVENT_DEPTH);
  if (parsed.ok || parsed.error.reason !== "too_deep") return parsed;
  // What is too deep may stand in `variants`, where a payload begins deeper.
  const again = takeApart(body, span, MAX_VARIANTS_DEPTH);
  const isDeepInVariants =
    again.ok && again.value.variants !== undefined && (again.value.payload === null || isJson(again.value.payload));
  return isDeepInVariants ? again : parsed;
}

function takeApart(body: Uint8Array, span: JsonSpan, maxDepth: number): Result<PublishBody, PublishBodyError> {
  const text = body.subarray(span.start, span.end);
  const members = collectMembers(text, span.start, "", maxDepth, ["payload", "variants"]);
  if (!members.ok) return members;
  const { fields, taken, fieldBytes } = members.value;
  const payload = taken.get("payload");
  const event = { fields, payload: payload ? text.subarray(payload.start, payload.end) : null };
  const given = taken.get("variants");
  if (!given || isNull(text, given)) return ok(event);
  const variants = parseVariants(text, given, span.start, MAX_FIELD_BYTES - fieldBytes);
  return variants.ok ? ok({ ...event, variants: variants.value }) : variants;
}

/** The elements of `variants`. `room` is what is left for members that are not payloads. */
function parseVariants(
  text: Uint8Array,
  { start, end }: JsonSpan,
  base: number,
  room: number,
): Result<PublishedVariant[], PublishBodyError> {
  const elements: JsonSpan[] = [];
  const scan = scanJson(
    text.subarray(start, end),
    ({ value }) => {
      if (elements.length < MAX_VARIANTS_READ) elements.push({ start: start + value.start, end: start + value.end });
    },
    MAX_VARIANTS_DEPTH,
  );
  if (!scan.ok) return refuse(faultFrom(scan.error, base + start));
  if (scan.value !== "array") return refuse({ reason: "malformed_variants", path: "variants" });
  const variants: PublishedVariant[] = [];
  let left = room;
  for (const [i, element] of elements.entries()) {
    const inside = text.subarray(element.start, element.end);
    const path = `variants.${i}`;
    const members = collectMembers(inside, base + element.start, `${path}.`, MAX_EVENT_DEPTH, ["payload"]);
    if (!members.ok) {
      return members.error.reason === "not_an_object" ? refuse({ reason: "malformed_variants", path }) : members;
    }
    left -= members.value.fieldBytes;
    if (left < 0) return refuse({ reason: "fields_too_large" });
    const payload = members.value.taken.get("payload");
    variants.push({
      fields: members.value.fields,
      payload: payload ? inside.subarray(payload.start, payload.end) : null,
    });
  }
  return ok(variants);
}

/**
 * The members of an object, decoded on an object without a prototype, but for those in `located`, which are only located. `base`
 * is where `text` begins in the request, `under` the path to it.
 */
function collectMembers(
  text: Uint8Array,
  base: number,
  under: string,
  maxDepth: number,
  located: string[],
): Result<{ fields: Record<string, unknown>; taken: Map<string, JsonSpan>; fieldBytes: number }, PublishBodyError> {
  const fields: Record<string, unknown> = Object.create(null);
  const taken = new Map<string, JsonSpan>();
  let fault = null as PublishBodyError | null;
  let fieldBytes = 0;

  const scan = scanJson(
    text,
    ({ key, value }) => {
      if (key === null || fault !== null) return;
      // A key is weighed before it is decoded; those that are located, however escaped, fit in the limit.
      if (key.end - key.start > MAX_FIELD_BYTES) {
        fault = { reason: "fields_too_large" };
        return;
      }
      const name = readJson(text, key) as string;
      if (taken.has(name) || Object.hasOwn(fields, name)) {
        fault = { reason: "duplicate_field", path: pathOf(under + name), offset: base + key.start };
      } else if (located.includes(name)) {
        taken.set(name, value);
      } else {
        fieldBytes += value.end - key.start;
        if (fieldBytes > MAX_FIELD_BYTES) fault = { reason: "fields_too_large" };
        else fields[name] = readJson(text, value);
      }
    },
    maxDepth,
  );
  if (!scan.ok) return refuse(faultFrom(scan.error, base));
  if (scan.value !== "object") return refuse({ reason: "not_an_object" });
  return fault === null ? ok({ fields, taken, fieldBytes }) : refuse(fault);
}

function isNull(text: Uint8Array, { start, end }: JsonSpan): boolean {
  return end - start === 4 && readJson(text, { start, end }) === null;
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
