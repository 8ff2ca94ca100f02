import { attemptId, deliveryId, webhookId, type DeliveryRef } from "../../core/ids.ts";
import type { Attempt, Delivery } from "../../core/model.ts";
import { formatTime } from "../../core/timestamps.ts";
import { presentTime } from "./time.ts";

export function presentDelivery(delivery: Delivery) {
  const sibling = (replayNo: number | null) => (replayNo === null ? null : deliveryId({ ...delivery, replayNo }));
  return {
    id: deliveryId(delivery),
    event_id: delivery.eventId,
    endpoint_id: delivery.endpointId,
    subscription_id: delivery.subscriptionId,
    status: delivery.status,
    attempt_count: delivery.attemptCount,
    idempotency_key: webhookId(delivery),
    retry_policy: delivery.retryPolicy,
    created_at: formatTime(delivery.createdAt),
    scheduled_at: presentTime(delivery.scheduledAt),
    // While an attempt is under way nobody knows when the next one would be.
    next_attempt_at: delivery.status === "pending" ? presentTime(delivery.nextAttemptAt) : null,
    last_attempt_at: presentTime(delivery.lastAttemptAt),
    last_error_class: delivery.lastErrorClass,
    last_status_code: delivery.lastStatusCode,
    terminal_at: presentTime(delivery.terminalAt),
    final_outcome: delivery.finalOutcome,
    replay_of: sibling(delivery.replayOf),
    replayed_as: sibling(delivery.replayedAs),
    filter_match_ms: delivery.filterMatchMs,
    filter_match_steps: delivery.filterMatchSteps,
    relay_region: delivery.relayRegion,
    expires_at: formatTime(delivery.expiresAt),
  };
}

export function presentAttempt(delivery: DeliveryRef, attempt: Attempt) {
  return {
    id: attemptId(deliveryId(delivery), attempt.attemptNumber),
    delivery_id: deliveryId(delivery),
    attempt_number: attempt.attemptNumber,
    requested_at: formatTime(attempt.requestedAt),
    responded_at: presentTime(attempt.respondedAt),
    latency_ms: attempt.latencyMs,
    status_code: attempt.statusCode,
    outcome_class: attempt.outcomeClass,
    error_class: attempt.errorClass,
    response_body_sha256: attempt.responseBodySha256,
    response_headers_json: attempt.responseHeadersJson,
    partner_request_id: attempt.partnerRequestId,
    worker_id: attempt.workerId,
    relay_region: attempt.relayRegion,
    endpoint_revision: attempt.endpointRevision,
    signing_secret_ids: attempt.signingSecretIds,
  };
}
