import { z } from "zod";
import type { SkippedSubscription } from "../../core/match.ts";
import type { Event } from "../../core/model.ts";
import { formatTime } from "../../core/timestamps.ts";
import { presentTime } from "./time.ts";
import { ANSWERS } from "../openapi/registries.ts";
import { id, sha256, time } from "./fields.ts";

/** A subscription that an event passed over because its filter failed. */
export const SkippedAnswer = z
  .object({ subscription_id: id("sub"), reason: z.string() })
  .register(ANSWERS, { id: "SkippedSubscription" });
type SkippedAnswer = z.infer<typeof SkippedAnswer>;

export function presentSkipped({ subscriptionId, reason }: SkippedSubscription): SkippedAnswer {
  return { subscription_id: subscriptionId, reason };
}
const EventVariantAnswer = z
  .object({ schema_version: z.int(), payload_sha256: sha256, payload_size: z.int() })
  .register(ANSWERS, { id: "EventVariant" });

export const EventAnswer = z
  .object({
    id: id("evt"),
    source_id: id("src"),
    type: z.string(),
    schema_version: z.int(),
    ordering_key: z.string().nullable(),
    idempotency_key: z.string().nullable(),
    payload_ref: z.string(),
    payload_sha256: sha256,
    payload_size: z.int(),
    content_type: z.string(),
    content_encoding: z.string().nullable(),
    occurred_at: time,
    relayed_at: time,
    created_at: time,
    cause_event_id: id("evt").nullable(),
    relay_region: z.string().nullable(),
    expires_at: time,
    dispatched_at: time.nullable(),
    delivery_count: z.int(),
    payload_erased_at: time.nullable(),
    skipped_count: z.int(),
    skipped: z.array(SkippedAnswer),
    variants: z.array(EventVariantAnswer),
  })
  .register(ANSWERS, { id: "Event" });
type EventAnswer = z.infer<typeof EventAnswer>;

export function presentEvent(event: Event): EventAnswer {
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
    skipped_count: event.skippedCount,
    skipped: event.skipped.map(presentSkipped),
    variants: event.variants.map(({ schemaVersion, payloadSha256, payloadSize }) => ({
      schema_version: schemaVersion,
      payload_sha256: payloadSha256,
      payload_size: payloadSize,
    })),
  };
}
