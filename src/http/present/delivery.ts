import { z } from "zod";
import { attemptId, deliveryId, webhookId, type DeliveryRef } from "../../core/ids.ts";
import { DELIVERY_STATUSES, type Attempt, type Delivery } from "../../core/model.ts";
import { answerRuns, lastAnswerRun, type AnswerRun } from "../../core/same-answer.ts";
import { formatTime } from "../../core/timestamps.ts";
import { presentTime } from "./time.ts";
import { ERROR_CLASSES, FINAL_OUTCOMES, OUTCOME_CLASSES } from "../../core/outcome.ts";
import { ANSWERS } from "../openapi/registries.ts";
import { id, known, sha256, time, wholePolicy } from "./fields.ts";

export const DeliveryAnswer = z
  .object({
    id: id("dlv"),
    event_id: id("evt"),
    endpoint_id: id("ep"),
    subscription_id: id("sub"),
    schema_version: z.int(),
    status: z.enum(DELIVERY_STATUSES),
    attempt_count: z.int(),
    idempotency_key: id("msg"),
    retry_policy: wholePolicy,
    created_at: time,
    scheduled_at: time.nullable(),
    next_attempt_at: time.nullable(),
    last_attempt_at: time.nullable(),
    last_error_class: known(ERROR_CLASSES).nullable(),
    last_status_code: z.int().nullable(),
    terminal_at: time.nullable(),
    final_outcome: known(FINAL_OUTCOMES).nullable(),
    replay_of: id("dlv").nullable(),
    replayed_as: id("dlv").nullable(),
    filter_match_ms: z.number().nullable(),
    filter_match_steps: z.int().nullable(),
    relay_region: z.string().nullable(),
    expires_at: time,
  })
  .register(ANSWERS, { id: "Delivery" });
type DeliveryAnswer = z.infer<typeof DeliveryAnswer>;

export const AttemptAnswer = z
  .object({
    id: z.string().meta({ pattern: "^dlv_[0-9a-z]+:[0-9]+$" }),
    delivery_id: id("dlv"),
    attempt_number: z.int().min(1),
    requested_at: time,
    responded_at: time.nullable(),
    latency_ms: z.int().nullable(),
    status_code: z.int().nullable(),
    outcome_class: known(OUTCOME_CLASSES).nullable(),
    error_class: known(ERROR_CLASSES).nullable(),
    response_body_sha256: sha256.nullable(),
    response_headers_json: z.string().nullable(),
    partner_request_id: z.string().nullable(),
    worker_id: z.string().nullable(),
    relay_region: z.string().nullable(),
    endpoint_revision: z.int(),
    signing_secret_ids: z.array(id("sec")),
    same_answer_run: z.int().nullable().optional(),
  })
  .register(ANSWERS, { id: "Attempt" });
type AttemptAnswer = z.infer<typeof AttemptAnswer>;

export const AnswerRunAnswer = z
  .object({
    count: z.int(),
    status_code: z.int(),
    response_body_sha256: sha256.nullable(),
    first_attempt_number: z.int(),
    last_attempt_number: z.int(),
  })
  .register(ANSWERS, { id: "AnswerRun" });

export const DeliveryWithAttemptsAnswer = DeliveryAnswer.extend({
  attempts: z.array(AttemptAnswer),
  last_answer_run: AnswerRunAnswer.nullable(),
}).register(ANSWERS, { id: "DeliveryWithAttempts" });
type DeliveryWithAttemptsAnswer = z.infer<typeof DeliveryWithAttemptsAnswer>;

export function presentDelivery(delivery: Delivery): DeliveryAnswer {
  const sibling = (replayNo: number | null) => (replayNo === null ? null : deliveryId({ ...delivery, replayNo }));
  return {
    id: deliveryId(delivery),
    event_id: delivery.eventId,
    endpoint_id: delivery.endpointId,
    subscription_id: delivery.subscriptionId,
    schema_version: delivery.schemaVersion,
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

export function presentAttempt(delivery: DeliveryRef, attempt: Attempt): AttemptAnswer {
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

/** All attempts of a delivery, oldest first, each with how often its answer has come in a row. */
export function presentAttempts(delivery: DeliveryRef, attempts: Attempt[]): AttemptAnswer[] {
  const runs = answerRuns(attempts);
  return attempts.map((attempt, i) => ({
    ...presentAttempt(delivery, attempt),
    same_answer_run: runs[i]?.count ?? null,
  }));
}

export function presentDeliveryWithAttempts(read: {
  delivery: Delivery;
  attempts: Attempt[];
}): DeliveryWithAttemptsAnswer {
  return {
    ...presentDelivery(read.delivery),
    attempts: presentAttempts(read.delivery, read.attempts),
    last_answer_run: presentAnswerRun(lastAnswerRun(read.attempts)),
  };
}

function presentAnswerRun(run: AnswerRun | null): z.infer<typeof AnswerRunAnswer> | null {
  return (
    run && {
      count: run.count,
      status_code: run.statusCode,
      response_body_sha256: run.responseBodySha256,
      first_attempt_number: run.firstAttemptNumber,
      last_attempt_number: run.lastAttemptNumber,
    }
  );
}
