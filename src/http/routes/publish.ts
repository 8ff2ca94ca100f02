import { Hono, type Context } from "hono";
import { AppError, invalidField } from "../../app/app-error.ts";
import { notingPublished } from "../../app/metrics/note-published.ts";
import { publishEvents } from "../../app/publish/publish-events.ts";
import type { PublishItem } from "../../app/publish/publish-input.ts";
import { parseIdempotencyKeyHeader } from "../../core/grammar.ts";
import { MAX_VARIANTS } from "../../core/event-variants.ts";
import { HOP_HEADER, MAX_HOPS, parseHops } from "../../core/hops.ts";
import { isJson } from "../../core/json-span.ts";
import {
  MAX_FIELD_BYTES,
  parseBatchBody,
  parseNdjsonBody,
  parsePublishBody,
  type BatchBodyError,
  type PublishBody,
} from "../../core/publish-body.ts";
import { signedIdempotencyKey } from "../../core/signed-request.ts";
import type { HttpContext } from "../context.ts";
import type { AuthOptions } from "../middleware/authenticate.ts";
import { acceptedStatus, presentAccepted, presentBatchResult } from "../present/publish.ts";
import { readBytes, readQuery } from "../request.ts";
import { openPublish, type OpenedPublish } from "../signed-publish.ts";

const MAX_BATCH_BYTES = 8 * 1024 * 1024;
const MAX_BATCH_EVENTS = 500;
/** They are sent on as headers, so nothing may be in them that a header cannot hold. */
const HEADER_VALUE = /^[\x20-\x7e]{1,256}$/;
const HEADER_VALUE_RULE = "must be at most 256 printable ASCII characters";

export interface PublishOptions extends AuthOptions {
  /** The colo that took the request in, or what the settings say. */
  relayRegion(env: Env, request: Request): string | null;
}

/** Publishing. The caller is authorized from remembered configuration, which the commit proves (two storage trips). */
export function publishRoutes(options: PublishOptions) {
  return new Hono<HttpContext>()
    .post("/", async (c) => {
      const caller = await openPublish(options, c, (maxPayloadBytes) =>
        readBytes(c.req.raw, maxEventBytes(maxPayloadBytes)).catch(asPayloadTooLarge),
      );
      const item = await itemOf(async () => {
        readHops(c);
        const body = await caller.body();
        requireJsonType(c);
        const parsed = parsePublishBody(body);
        if (!parsed.ok) throw bodyError(parsed.error);
        return takeIdempotencyKey(c, toItem(parsed.value), caller.messageId);
      });
      return publishOne(options, c, caller, item);
    })
    .post("/raw", async (c) => {
      const read = (maxBytes: number) => readBytes(c.req.raw, maxBytes).catch(asPayloadTooLarge);
      const caller = await openPublish(options, c, read, true);
      const item = await itemOf(async () => {
        readHops(c);
        return takeIdempotencyKey(c, rawItem(c, await caller.body()), caller.messageId);
      });
      return publishOne(options, c, caller, item);
    })
    .post("/batch", async (c) => {
      const caller = await openPublish(options, c, () => readBytes(c.req.raw, MAX_BATCH_BYTES));
      const items = await itemOf(() => batchItems(c, caller));
      // A batch that cannot be read is refused as a whole, by the same road.
      if (items instanceof AppError) return publishOne(options, c, caller, items);
      const region = options.relayRegion(c.env, c.req.raw as Request);
      const hops = readHops(c);
      const results = await notingPublished(caller.deps, items.length, () =>
        publishEvents(caller.deps, caller.publisher, items, region, hops),
      );
      return c.json({ results: results.map((result) => presentBatchResult(result, c.var.requestId)) }, 202);
    });
}

/** What is wrong with a request is handed on like an event: it is told only to a caller whose key was proved. */
async function itemOf<T>(read: () => Promise<T>): Promise<T | AppError> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
}

async function publishOne(
  options: PublishOptions,
  c: Context<HttpContext>,
  { deps, publisher }: OpenedPublish,
  item: PublishItem | AppError,
) {
  const region = options.relayRegion(c.env, c.req.raw as Request);
  const hops = item instanceof AppError ? 0 : readHops(c);
  const [result] = await notingPublished(deps, 1, () => publishEvents(deps, publisher, [item], region, hops));
  if (result instanceof AppError) throw result;
  return c.json(presentAccepted(result!), acceptedStatus(result!));
}

async function batchItems(c: Context<HttpContext>, caller: OpenedPublish): Promise<(PublishItem | AppError)[]> {
  readHops(c);
  const body = await caller.body();
  const isNdjson = mediaType(c) === "application/x-ndjson";
  if (!isNdjson) requireJsonType(c);
  if (c.req.header("Idempotency-Key") !== undefined) {
    throw invalidField("Idempotency-Key", "belongs to one event: in a batch each event has its own idempotency_key");
  }
  const parsed = isNdjson ? parseNdjsonBody(body, MAX_BATCH_EVENTS) : parseBatchBody(body, MAX_BATCH_EVENTS);
  if (!parsed.ok) throw bodyError(parsed.error);
  return Promise.all(
    parsed.value.map((event, index) =>
      itemOf(async () => {
        if (!event.ok) throw bodyError(event.error);
        const item = toItem(event.value);
        if (caller.messageId !== null) item.fields["idempotency_key"] ??= signedIdempotencyKey(caller.messageId, index);
        return item;
      }),
    ),
  );
}

/** How many relays the request has come through; one that has come through too many goes in a ring. */
function readHops(c: Context<HttpContext>): number {
  const hops = parseHops(c.req.header(HOP_HEADER));
  if (hops.ok) return hops.value;
  if (hops.error === "malformed") throw invalidField(HOP_HEADER, "must be a whole number");
  throw new AppError(
    "loop_detected",
    `The event has come through ${MAX_HOPS} relays (${HOP_HEADER}): an endpoint of one of them leads back to another.`,
  );
}

/**
 * The header means the same as the field, so both must say the same. A signature covers the field and not the header:
 * there `webhook-id` is the key of an event that has none, and the header may only repeat what is signed.
 */
function takeIdempotencyKey(c: Context<HttpContext>, item: PublishItem, messageId: string | null): PublishItem {
  const { fields } = item;
  if (messageId !== null) fields["idempotency_key"] ??= signedIdempotencyKey(messageId, 0);
  const header = c.req.header("Idempotency-Key");
  if (header === undefined) return item;
  const key = parseIdempotencyKeyHeader(header);
  if (!key.ok) throw invalidField("Idempotency-Key", "must be 1 to 256 visible ASCII characters, quoted or not");
  if (fields["idempotency_key"] != null && fields["idempotency_key"] !== key.value) {
    throw messageId === null
      ? invalidField("idempotency_key", "differs from the Idempotency-Key header")
      : invalidField("Idempotency-Key", "is not signed: it may only repeat the event's idempotency_key, or webhook-id");
  }
  fields["idempotency_key"] = key.value;
  return item;
}

function toItem({ fields, payload, variants = [] }: PublishBody): PublishItem {
  if (payload === null) throw invalidField("payload", "is required");
  const json = { payloadIsJson: true, contentType: "application/json", contentEncoding: null };
  return { fields, payload, variants, ...json };
}

/** A whole event, with its payload in as many versions as it may have; those that are large have no room for all of them. */
function maxEventBytes(maxPayloadBytes: number): number {
  const versions = Math.min((1 + MAX_VARIANTS) * maxPayloadBytes, MAX_BATCH_BYTES);
  return Math.max(maxPayloadBytes, versions) + MAX_FIELD_BYTES;
}

/** Any body is the payload, byte for byte; the event's fields are query parameters. */
function rawItem(c: Context<HttpContext>, payload: Uint8Array): PublishItem {
  const contentType = c.req.header("Content-Type") || "application/octet-stream";
  if (!HEADER_VALUE.test(contentType)) throw invalidField("Content-Type", HEADER_VALUE_RULE);
  const contentEncoding = c.req.header("Content-Encoding") || null;
  if (contentEncoding !== null && !HEADER_VALUE.test(contentEncoding)) {
    throw invalidField("Content-Encoding", HEADER_VALUE_RULE);
  }
  const isJsonType = /^application\/(json|[^;\s]+\+json)$/.test(mediaType(c));
  const fields: Record<string, unknown> = readQuery(c);
  // A query parameter is text; the schema wants the number it spells, and names what spells none.
  if (/^\d{1,10}$/.test(String(fields["schema_version"]))) fields["schema_version"] = Number(fields["schema_version"]);
  return {
    fields,
    payload,
    payloadIsJson: isJsonType && contentEncoding === null && isJson(payload),
    contentType,
    contentEncoding,
  };
}

function mediaType(c: Context<HttpContext>): string {
  return (c.req.header("Content-Type") ?? "").split(";")[0]!.trim().toLowerCase();
}

/** A body without a type is taken for JSON: `curl -d` and scripts often leave it out. */
function requireJsonType(c: Context<HttpContext>): void {
  const type = mediaType(c);
  if (["", "application/json", "text/plain", "application/x-www-form-urlencoded"].includes(type)) return;
  if (/^application\/[^;\s]+\+json$/.test(type)) return;
  throw new AppError("unsupported_media_type", "Send application/json. Other payloads go to /v1/events/raw.");
}

function asPayloadTooLarge(error: unknown): never {
  if (error instanceof AppError && error.code === "request_too_large") {
    throw new AppError("payload_too_large", error.message);
  }
  throw error;
}

export function bodyError({ reason, path, offset }: BatchBodyError): AppError {
  const at = offset === undefined ? "" : ` (at byte ${offset})`;
  switch (reason) {
    case "invalid_utf8":
      return new AppError("invalid_utf8", `The body is not valid UTF-8${at}.`);
    case "invalid_json":
      return new AppError("invalid_json", `The body is not valid JSON${at}.`);
    case "duplicate_field":
      return new AppError("duplicate_field", "A field is given twice.", [
        { path: path ?? "", message: "is given twice" },
      ]);
    case "not_an_object":
      return invalidField("", "must be a JSON object");
    case "too_deep":
      return invalidField(path ?? "", "is nested too deeply");
    case "malformed_variants":
      return invalidField(path ?? "variants", path === "variants" ? "must be a list" : "must be an object");
    case "fields_too_large":
      return invalidField("", `the fields beside the payload are larger than ${MAX_FIELD_BYTES} bytes`);
    case "missing_events":
      return invalidField("events", "must be an array of events");
    case "no_events":
      return invalidField("events", "must hold at least one event");
    case "too_many_events":
      return new AppError("request_too_large", `A batch holds at most ${MAX_BATCH_EVENTS} events.`);
    case "unknown_field":
      return invalidField(path ?? "", "is not a known field");
  }
}
