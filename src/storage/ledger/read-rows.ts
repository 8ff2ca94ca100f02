/** What is read of an event, a delivery and an attempt, and how it reads. */
import { decodeVariants } from "../../core/event-variants.ts";
import type { SkippedSubscription } from "../../core/match.ts";
import type { Attempt, Delivery, Event } from "../../core/model.ts";

export type Row = Record<string, any>;

/** Of an event `d`. */
export const EVENT_COLUMNS = "d.*, hex(payload_sha256) as hash";
/** Of a delivery `d`. */
export const DELIVERY_COLUMNS = `d.*, (select p.policy from retry_policy p
  where p.tenant_id = d.tenant_id and p.id = d.retry_policy_id) as policy,
  coalesce(d.schema_version, (select e.schema_version from event e
    where e.tenant_id = d.tenant_id and e.id = d.event_id)) as carried_version`;
/** Of an attempt `a`. */
export const ATTEMPT_COLUMNS = "a.*, hex(response_body_sha256) as hash";

export function toEvent(row: Row): Event {
  return {
    id: row["id"],
    sourceId: row["source_id"],
    type: row["type"],
    schemaVersion: row["schema_version"],
    orderingKey: row["ordering_key"],
    idempotencyKey: row["idempotency_key"],
    payloadRef: row["payload_ref"],
    payloadSha256: row["hash"].toLowerCase(),
    payloadSize: row["payload_size"],
    payloadIsJson: row["payload_is_json"] === 1,
    contentType: row["content_type"],
    contentEncoding: row["content_encoding"],
    occurredAt: row["occurred_at"],
    relayedAt: row["relayed_at"],
    causeEventId: row["cause_event_id"],
    relayRegion: row["relay_region"],
    expiresAt: row["expires_at"],
    dispatchedAt: row["dispatched_at"],
    deliveryCount: row["delivery_count"],
    hopCount: row["hop_count"],
    payloadErasedAt: row["payload_erased_at"],
    variants: decodeVariants(row["variants"]),
    skippedCount: row["skipped_count"],
    skipped: toSkipped(row["skipped"]),
  };
}

/** `[[subscription id, reason], …]`; null where nobody was. */
export function toSkipped(text: string | null): SkippedSubscription[] {
  const pairs = text === null ? [] : (JSON.parse(text) as [string, SkippedSubscription["reason"]][]);
  return pairs.map(([subscriptionId, reason]) => ({ subscriptionId, reason }));
}

export function toDelivery(row: Row): Delivery {
  return {
    eventId: row["event_id"],
    endpointId: row["endpoint_id"],
    replayNo: row["replay_no"],
    subscriptionId: row["subscription_id"],
    schemaVersion: row["carried_version"],
    status: row["status"],
    attemptCount: row["attempt_count"],
    retryPolicy: JSON.parse(row["policy"]),
    createdAt: row["created_at"],
    scheduledAt: row["scheduled_at"],
    nextAttemptAt: row["next_attempt_at"],
    lastAttemptAt: row["last_attempt_at"],
    lastErrorClass: row["last_error_class"],
    lastStatusCode: row["last_status_code"],
    terminalAt: row["terminal_at"],
    finalOutcome: row["final_outcome"],
    replayOf: row["replay_of"],
    replayedAs: row["replayed_as"],
    filterMatchMs: row["filter_match_ms"],
    filterMatchSteps: row["filter_match_steps"],
    relayRegion: row["relay_region"],
    expiresAt: row["expires_at"],
  };
}

export function toAttempt(row: Row): Attempt {
  return {
    attemptNumber: row["attempt_number"],
    requestedAt: row["requested_at"],
    respondedAt: row["responded_at"],
    latencyMs: row["latency_ms"],
    statusCode: row["status_code"],
    outcomeClass: row["outcome_class"],
    errorClass: row["error_class"],
    responseBodySha256: row["hash"] === "" ? null : row["hash"].toLowerCase(),
    responseHeadersJson: row["response_headers_json"],
    partnerRequestId: row["partner_request_id"],
    workerId: row["worker_id"],
    relayRegion: row["relay_region"],
    endpointRevision: row["endpoint_revision"],
    signingSecretIds: JSON.parse(row["signing_secret_ids"]),
  };
}
