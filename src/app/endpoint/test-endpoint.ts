import { createEventIds, deliveryId, type DeliveryRef, type TenantDeliveryRef } from "../../core/ids.ts";
import type { Attempt, Delivery, Event } from "../../core/model.ts";
import { joinPayloadRef, payloadObjectKey } from "../../core/payload-ref.ts";
import { retentionClassDays, retentionMs } from "../../core/retention.ts";
import type { RetryPolicy } from "../../core/retry-policy.ts";
import { sha256Hex } from "../../core/sha256.ts";
import { RELAY_SOURCE_NAME, relaySourceId } from "../../core/relay-source.ts";
import { TEST_EVENT_TYPE, TEST_PAYLOAD } from "../../core/test-event.ts";
import { AppError, notFound } from "../app-error.ts";
import { claimFor, type Claim, type DeliverDeps } from "../deliver/deliver.ts";
import { prepare, type LoadedDelivery, type Prepared } from "../deliver/prepare.ts";
import { sendAttempt } from "../deliver/send-attempt.ts";
import { requireAdmin, type Principal } from "../principal.ts";
import type { Runtime } from "../runtime.ts";
import { untilFresh } from "../until-fresh.ts";

/** What of a delivery a test send takes from its endpoint. */
interface TestTarget extends Pick<LoadedDelivery, "endpoint" | "secrets" | "policy" | "sourceSignature"> {
  isSuspended: boolean;
  region: string | null;
}

export interface TestEndpointDeps extends Pick<Runtime, "now" | "randomBytes"> {
  retentionDays: number;
  putPayloads(objectKey: string, bytes: Uint8Array): Promise<void>;
  loadTestTarget(tenantId: string, endpointId: string): Promise<TestTarget | null>;
  /** False when the endpoint has changed since it was read, or the tenant is suspended. */
  insertTestSend(claim: Claim, event: Event, policy: RetryPolicy, now: number): Promise<boolean>;
  findDeliveryWithAttempts(
    tenantId: string,
    ref: DeliveryRef,
    now: number,
  ): Promise<{ delivery: Delivery; attempts: Attempt[] } | null>;
  /** What sends, under a `worker_id` that says that it is a test. */
  testSender(): DeliverDeps;
  background(work: Promise<unknown>): void;
}

/**
 * Sends one test event to an endpoint at once, past its lane, cap, rate, pause and disabling, and gives back the attempt,
 * which is on record with its delivery and event like any other. There is only this one, whatever comes of it.
 */
export async function testEndpoint(
  deps: TestEndpointDeps,
  principal: Principal,
  endpointId: string,
  colo: string | null,
): Promise<{ delivery: Delivery; attempt: Attempt }> {
  requireAdmin(principal);
  const { tenantId } = principal;
  const payload = new TextEncoder().encode(TEST_PAYLOAD);
  const [id] = createEventIds(deps.now(), deps.randomBytes(10), 1);
  const ref = { tenantId, eventId: id!, endpointId, replayNo: 0 };
  const sender = deps.testSender();

  const claimed = await untilFresh(async () => {
    const target = await deps.loadTestTarget(tenantId, endpointId);
    if (!target) throw notFound("endpoint");
    if (target.isSuspended) throw new AppError("tenant_suspended", "The tenant is suspended: nothing is sent.");
    const now = deps.now();
    const event = await testEvent(deps, ref, target, payload, sender.relayRegion ?? colo, now);
    const delivery = testDelivery(ref, target, event);
    const prepared = await prepareTest(sender, delivery, payload);
    await deps.putPayloads(event.payloadRef.split("#")[0]!, payload);
    const claim = claimFor(sender, { delivery, attemptNumber: 1, region: target.region }, prepared);
    // One whose answer was lost is done again.
    const insert = () => deps.insertTestSend(claim, event, delivery.policy, now);
    return (await insert().catch(insert)) ? { delivery, prepared, ...claim, startedAt: now } : null;
  });

  // The request is on record as made: a caller who hangs up must not end it.
  const sending = sendAttempt(sender, claimed);
  deps.background(sending);
  await sending;
  const recorded = await deps.findDeliveryWithAttempts(tenantId, ref, deps.now());
  const attempt = recorded?.attempts[0];
  if (!attempt) throw new Error(`The attempt of test send ${deliveryId(ref)} is not on record.`);
  return { delivery: recorded!.delivery, attempt };
}

async function testEvent(
  deps: TestEndpointDeps,
  { tenantId, eventId }: TenantDeliveryRef,
  { policy }: TestTarget,
  payload: Uint8Array,
  relayRegion: string | null,
  now: number,
): Promise<Event> {
  const classDays = retentionClassDays(deps.retentionDays, [policy.max_age_seconds]);
  return {
    id: eventId,
    sourceId: relaySourceId(tenantId),
    type: TEST_EVENT_TYPE,
    schemaVersion: 1,
    orderingKey: null,
    idempotencyKey: null,
    payloadRef: joinPayloadRef(payloadObjectKey(classDays, tenantId, eventId, now), 0),
    payloadSha256: await sha256Hex(payload),
    payloadSize: payload.length,
    payloadIsJson: true,
    hopCount: 0,
    contentType: "application/json",
    contentEncoding: null,
    occurredAt: now,
    relayedAt: now,
    causeEventId: null,
    relayRegion,
    expiresAt: now + retentionMs(classDays),
    dispatchedAt: now,
    deliveryCount: 1,
    payloadErasedAt: null,
    skippedCount: 0,
    skipped: [],
    variants: [],
  };
}

/** The delivery as a worker would have loaded it. */
function testDelivery(ref: TenantDeliveryRef, target: TestTarget, event: Event): LoadedDelivery {
  const { endpoint, secrets, policy, sourceSignature } = target;
  return {
    ...ref,
    status: "pending",
    attemptCount: 0,
    failureCount: 0,
    relayFaultCount: 0,
    nextAttemptAt: null,
    lastAttemptAt: null,
    lockedUntil: null,
    token: null,
    scheduledAt: event.relayedAt,
    expiresAt: event.expiresAt,
    laneKey: null,
    holdUntil: null,
    policy: { ...policy, max_attempts: 1 },
    event: { ...event, sourceName: RELAY_SOURCE_NAME, payloadErased: false },
    endpoint,
    secrets,
    sourceSignature,
  };
}

/** What the relay would not send is refused before anything is stored. */
async function prepareTest(sender: DeliverDeps, delivery: LoadedDelivery, payload: Uint8Array): Promise<Prepared> {
  const result = await prepare(sender, async () => payload, delivery);
  switch (result.kind) {
    case "ready":
      return result.prepared;
    case "refused":
      throw new AppError("destination_blocked", "The relay does not send to this endpoint's URL.");
    case "fault":
      throw new AppError("unavailable", "The relay could not make the request. Try again.");
  }
}
