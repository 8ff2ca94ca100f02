import { encodeBase64 } from "./base64.ts";
import { concatBytes } from "./bytes.ts";
import { deliveryId, webhookId, type DeliveryRef } from "./ids.ts";
import { HOP_HEADER } from "./hops.ts";
import { formatTime } from "./timestamps.ts";

export const VERSION = "0.1.0";

/** How an endpoint gets its events. */
export const PAYLOAD_FORMATS = ["envelope", "raw", "cloudevents"] as const;
export type PayloadFormat = (typeof PAYLOAD_FORMATS)[number];

/** The event as its consumers see it. Times in ms since 1970 UTC. */
export interface OutboundEvent {
  id: string;
  type: string;
  sourceName: string;
  schemaVersion: number;
  orderingKey: string | null;
  causeEventId: string | null;
  occurredAt: number;
  relayedAt: number;
  contentType: string;
  contentEncoding: string | null;
  payloadIsJson: boolean;
  /** Relays it had come through when it was published here. */
  hopCount: number;
}

/**
 * The body of contract §3. `envelope` puts the published bytes between two pieces of text, so they arrive as they came;
 * bytes that are not JSON travel in it as base64 with their content type. `raw` and `cloudevents` are the bytes themselves.
 */
export function outboundBody(
  format: PayloadFormat,
  event: OutboundEvent,
  payload: Uint8Array,
): { body: Uint8Array; contentType: string; contentEncoding: string | null } {
  if (format === "cloudevents") {
    return { body: payload, contentType: dataContentType(event.contentType), contentEncoding: event.contentEncoding };
  }
  if (format !== "envelope") {
    return { body: payload, contentType: event.contentType, contentEncoding: event.contentEncoding };
  }
  const head = {
    id: event.id,
    type: event.type,
    source: event.sourceName,
    occurred_at: formatTime(event.occurredAt),
    relayed_at: formatTime(event.relayedAt),
    schema_version: event.schemaVersion,
    ...(event.orderingKey !== null && { ordering_key: event.orderingKey }),
    ...(event.causeEventId !== null && { cause_event_id: event.causeEventId }),
  };
  const body = event.payloadIsJson
    ? concatBytes([openObject(head), encode(',"payload":'), payload, encode("}")])
    : encode(
        JSON.stringify({
          ...head,
          payload_base64: encodeBase64(payload),
          payload_content_type: event.contentType,
          ...(event.contentEncoding !== null && { payload_content_encoding: event.contentEncoding }),
        }),
      );
  return { body, contentType: "application/json", contentEncoding: null };
}

/**
 * Whoever gets a CloudEvent knows by `application/cloudevents…` that its attributes are in the body, and passes over the headers. A
 * payload of such a type would so be taken for an event of its producer's making, under any source and type.
 */
function dataContentType(contentType: string): string {
  if (!/^\s*application\/cloudevents/i.test(contentType)) return contentType;
  return /\+json\s*(;|$)/i.test(contentType) ? "application/json" : "application/octet-stream";
}

/** The headers of contract §3, but for the three of Standard Webhooks' signature and the content type. */
export function eventHeaders(
  event: OutboundEvent,
  delivery: DeliveryRef,
  attemptNumber: number,
  startedAt: number,
): [string, string][] {
  return [
    ["User-Agent", `Hooklane/${VERSION}`],
    ["X-Webhook-Source", event.sourceName],
    ["X-Webhook-Event-Id", event.id],
    ["X-Webhook-Event-Type", event.type],
    ["X-Webhook-Schema-Version", String(event.schemaVersion)],
    ["X-Webhook-Delivery-Id", deliveryId(delivery)],
    ["X-Webhook-Attempt", String(attemptNumber)],
    ["X-Webhook-Occurred-At", formatTime(event.occurredAt)],
    ["X-Webhook-Relayed-At", formatTime(event.relayedAt)],
    ["X-Webhook-Attempt-Started-At", formatTime(startedAt)],
    [HOP_HEADER, String(event.hopCount + 1)],
    ...optional("X-Webhook-Cause-Event-Id", event.causeEventId),
    ...optional("X-Webhook-Ordering-Key", event.orderingKey),
  ];
}

/** `webhook-id` is the same for every attempt and replay; the timestamp is this attempt's (Standard Webhooks 1.0.0). */
export function signatureHeaders(
  delivery: DeliveryRef,
  timestampSeconds: number,
  signature: string,
): [string, string][] {
  return [
    ["webhook-id", webhookId(delivery)],
    ["webhook-timestamp", String(timestampSeconds)],
    ["webhook-signature", signature],
  ];
}

/** Whose keys `v1a` is by, for endpoints that ask for it: names are unique within a tenant only. */
export function sourceSignatureHeaders(sourceId: string | null): [string, string][] {
  return optional("X-Webhook-Source-Id", sourceId);
}

function optional(name: string, value: string | null): [string, string][] {
  return value === null ? [] : [[name, value]];
}

/** The object's JSON without its closing brace. */
function openObject(fields: object): Uint8Array {
  return encode(JSON.stringify(fields).slice(0, -1));
}

function encode(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
