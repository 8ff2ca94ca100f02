import type { Event } from "../../core/model.ts";
import { formatTime } from "../../core/timestamps.ts";
import { presentTime } from "./time.ts";

export function presentEvent(event: Event) {
  return {
    id: event.id,
    source_id: event.sourceId,
    type: event.type,
    schema_version: event.schemaVersion,
    ordering_key: event.orderingKey,
    idempotency_key: event.idempotencyKey,
    payload_ref: event.payloadRef,
    payload_sha256: event.payloadSha256,
    payload_size: event.payloadSize,
    payload_erased_at: presentTime(event.payloadErasedAt),
    content_type: event.contentType,
    content_encoding: event.contentEncoding,
    occurred_at: formatTime(event.occurredAt),
    relayed_at: formatTime(event.relayedAt),
    created_at: formatTime(event.relayedAt),
    cause_event_id: event.causeEventId,
    relay_region: event.relayRegion,
    expires_at: formatTime(event.expiresAt),
    dispatched_at: presentTime(event.dispatchedAt),
    delivery_count: event.deliveryCount,
  };
}
