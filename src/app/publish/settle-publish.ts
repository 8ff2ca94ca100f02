import { encodeVariants, storedSize } from "../../core/event-variants.ts";
import { deliveryId } from "../../core/ids.ts";
import type { MatchedDelivery, SkippedSubscription } from "../../core/match.ts";
import type { Event } from "../../core/model.ts";
import { AppError } from "../app-error.ts";
import type { DeliveryCall } from "../deliver/delivery-call.ts";
import { zeroPayload, type ZeroPayloadDeps } from "../event/zero-payload.ts";
import { SHOWN_DELIVERIES, type Accepted, type AcceptedDelivery } from "./accepted.ts";
import type { FanOutRef } from "./expand-fan-out.ts";
import type { Keyed, Plan } from "./plan-publish.ts";
import { orUnavailable } from "./refusals.ts";

/** The event that holds the idempotency key of the event at `index`. */
export interface KeyHolder {
  index: number;
  id: string;
  type: string;
  schemaVersion: number;
  orderingKey: string | null;
  payloadSha256: string;
  /** As `encodeVariants` has them. */
  variants: string | null;
  relayedAt: number;
  deliveryCount: number;
  skippedCount: number;
  skipped: SkippedSubscription[];
}

export interface SettleDeps extends ZeroPayloadDeps {
  /** Who holds these keys at `now`, each a source and its key; `index` into them. */
  findKeyHolders(keys: [sourceId: string, key: string][], now: number): Promise<KeyHolder[]>;
  deletePayloads(objectKeys: string[]): Promise<void>;
  /** One list an event, in the order of `eventIds`. */
  listFirstDeliveries(tenantId: string, eventIds: string[], limit: number): Promise<AcceptedDelivery[][]>;
  /** Rings for first attempts: never fails, never waits for the queue. */
  announce(calls: DeliveryCall[]): void;
  /** Rings for what an event owes beyond its commit, in the same way. */
  announceFanOuts(fanOuts: FanOutRef[]): void;
  /** Rings at a lane: never fails, never waits for it. */
  announceLane(lane: { tenantId: string; endpointId: string; generation: number }): void;
  /** Lets work go on after the answer. */
  background(work: Promise<unknown>): void;
}

/** Turns the commit into answers: a key held by another event is that event's duplicate, or a reused key. */
export async function settle(deps: SettleDeps, plan: Plan, holders: KeyHolder[]): Promise<(Accepted | AppError)[]> {
  const holderOf = new Map(holders.map((holder) => [holder.index, holder]));
  const calls: DeliveryCall[] = [];
  const lanes = new Map<string, number>();
  const fanOuts: FanOutRef[] = [];
  const duplicates: { position: number; holder: KeyHolder }[] = [];
  const refused: Event[] = [];
  for (const [i, event] of plan.events.entries()) {
    const holder = holderOf.get(i);
    const position = plan.positions[i]!;
    if (holder && holder.id !== event.id) {
      refused.push(event);
      const refusal = reusedKey(event, holder);
      if (refusal) plan.results[position] = refusal;
      else duplicates.push({ position, holder });
      continue;
    }
    const { atOnce, parts } = plan.fanOuts[i]!;
    plan.results[position] = {
      id: event.id,
      duplicate: false,
      relayedAt: event.relayedAt,
      deliveryCount: event.deliveryCount,
      deliveries: atOnce.slice(0, SHOWN_DELIVERIES).map((delivery) => ({
        endpointId: delivery.endpointId,
        subscriptionId: delivery.subscriptionId,
        status: isBornFailed(delivery) ? "failed" : "pending",
      })),
      skippedCount: event.skippedCount,
      skipped: event.skipped,
    };
    if (parts.length > 0) fanOuts.push({ tenantId: plan.tenantId, eventId: event.id });
    for (const delivery of atOnce) {
      if (isBornFailed(delivery)) continue;
      const { endpointId, lane } = delivery;
      // Thousands of objects are not called by one request: the consumer of the doorbells wakes them, some a message.
      if (lane && parts.length === 0) {
        lanes.set(endpointId, lane.generation);
        continue;
      }
      const id = deliveryId({ eventId: event.id, endpointId, replayNo: 0 });
      calls.push({ tenantId: plan.tenantId, deliveryId: id, attemptNumber: 1 });
    }
  }
  if (calls.length > 0) deps.announce(calls);
  if (fanOuts.length > 0) deps.announceFanOuts(fanOuts);
  for (const [endpointId, generation] of lanes) deps.announceLane({ tenantId: plan.tenantId, endpointId, generation });
  dropRefused(deps, plan, refused);
  await answerDuplicates(deps, plan, duplicates);
  return plan.results;
}

/** On record, and sent to nobody. */
function isBornFailed({ endpointDisabled, versionFault }: MatchedDelivery): boolean {
  return endpointDisabled || versionFault !== null;
}

/** Bytes that no event points to do not stay beside those of others, where erasing their first event would miss them. */
function dropRefused(deps: SettleDeps, plan: Plan, refused: Event[]): void {
  if (refused.length === plan.events.length) return dropObject(deps, plan);
  const zeroAll = async () => {
    for (const event of refused) await zeroPayload(deps, event.payloadRef, storedSize(event));
  };
  if (refused.length > 0) deps.background(zeroAll().catch(() => {}));
}

/** For an object that no event points to; if this fails its lifecycle rule removes it. */
export function dropObject(deps: SettleDeps, { objectKey }: Plan): void {
  deps.background(deps.deletePayloads([objectKey]).catch(() => {}));
}

/**
 * A producer's retry of what was accepted is its duplicate, whatever the configuration says of such events by now. One trip,
 * and only where something with a key was refused.
 */
export async function answerRefusedKeys(deps: SettleDeps, plan: Plan, now: number): Promise<void> {
  const { refusedKeys } = plan;
  if (refusedKeys.length === 0) return;
  const keys = refusedKeys.map(({ sourceId, idempotencyKey }): [string, string] => [sourceId, idempotencyKey!]);
  const holders = await orUnavailable(() => deps.findKeyHolders(keys, now));
  const duplicates = holders.flatMap((holder) => {
    const { position, ...refused } = refusedKeys[holder.index]!;
    return reusedKey(refused, holder) === null ? [{ position, holder }] : [];
  });
  await answerDuplicates(deps, plan, duplicates);
}

/** Each repeats its first event's answer; all of them are one trip. */
async function answerDuplicates(
  deps: SettleDeps,
  plan: Plan,
  duplicates: { position: number; holder: KeyHolder }[],
): Promise<void> {
  if (duplicates.length === 0) return;
  const ids = duplicates.map(({ holder }) => holder.id);
  const lists = await orUnavailable(() => deps.listFirstDeliveries(plan.tenantId, ids, SHOWN_DELIVERIES));
  for (const [i, { position, holder }] of duplicates.entries()) {
    const { id, relayedAt, deliveryCount, skippedCount, skipped } = holder;
    plan.results[position] = {
      id,
      duplicate: true,
      relayedAt,
      deliveryCount,
      deliveries: lists[i]!,
      skippedCount,
      skipped,
    };
  }
}

/** Null when the event is the one that holds the key, published again. */
function reusedKey(event: Keyed, first: KeyHolder): AppError | null {
  const same =
    first.type === event.type &&
    first.schemaVersion === event.schemaVersion &&
    first.orderingKey === event.orderingKey &&
    first.payloadSha256 === event.payloadSha256 &&
    first.variants === encodeVariants(event.variants);
  if (same) return null;
  return new AppError(
    "idempotency_key_reused",
    `This idempotency key belongs to ${first.id}, which has another type, schema_version, ordering_key, payload or variants.`,
  );
}
