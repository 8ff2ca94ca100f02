import { concatBytes } from "../../core/bytes.ts";
import { createEventIds, deliveryId } from "../../core/ids.ts";
import type { MatchedDelivery } from "../../core/match.ts";
import type { Event } from "../../core/model.ts";
import { joinPayloadRef, payloadObjectKey } from "../../core/payload-ref.ts";
import { retentionClassDays, retentionMs } from "../../core/retention.ts";
import { sha256Hex } from "../../core/sha256.ts";
import { AppError } from "../app-error.ts";
import { zeroPayload, type ZeroPayloadDeps } from "../event/zero-payload.ts";
import type { DeliveryCall } from "../deliver/delivery-call.ts";
import type { Runtime } from "../runtime.ts";
import { retrying } from "../retrying.ts";
import { reloadPublisher, type PublishConfig, type Publisher, type PublishConfigDeps } from "./publish-config.ts";
import { checkItem, type PublishItem } from "./publish-input.ts";

interface KeyHolder {
  index: number;
  id: string;
  type: string;
  schemaVersion: number;
  orderingKey: string | null;
  payloadSha256: string;
  relayedAt: number;
  deliveryCount: number;
}

export interface AcceptedDelivery {
  endpointId: string;
  subscriptionId: string;
  status: "pending" | "failed";
}

/** What a producer is told of one event; `deliveries` holds the first 100. */
export interface Accepted {
  id: string;
  duplicate: boolean;
  relayedAt: number;
  deliveryCount: number;
  deliveries: AcceptedDelivery[];
}

export interface PublishDeps
  extends PublishConfigDeps, ZeroPayloadDeps, Pick<Runtime, "now" | "randomBytes" | "sleep"> {
  maxPayloadBytes: number;
  retentionDays: number;
  putPayloads(objectKey: string, bytes: Uint8Array): Promise<void>;
  deletePayloads(objectKeys: string[]): Promise<void>;
  commitPublish(
    tenantId: string,
    revision: number,
    events: Event[],
    deliveries: { eventId: string; endpointId: string; subscriptionId: string }[],
    now: number,
  ): Promise<{ stale: true } | { stale: false; holders: KeyHolder[] }>;
  /** One list an event, in the order of `eventIds`. */
  listFirstDeliveries(tenantId: string, eventIds: string[], limit: number): Promise<AcceptedDelivery[][]>;
  /** Rings for first attempts: never fails, never waits for the queue. */
  announce(calls: DeliveryCall[]): void;
  /** Rings at a lane: never fails, never waits for it. */
  wakeLane(lane: { tenantId: string; endpointId: string; generation: number }): void;
  /** Lets work go on after the answer. */
  background(work: Promise<unknown>): void;
}

/** Deliveries that one request may owe: what one atomic commit bears. */
const MAX_DELIVERIES_PER_REQUEST = 25_000;
const SHOWN_DELIVERIES = 100;
/** The configuration may change under a publish; after this many changes in a row something else is wrong. */
const MAX_RELOADS = 5;

/**
 * Takes events: checked each on its own, payloads in one R2 object, then events and deliveries in one commit (architecture
 * §3, rules 1 to 3). Answers one result an item, in order; when it returns, what it accepted is durable. Two storage trips
 * when the configuration is known. Throws `unavailable` when a store refuses, with nothing acknowledged.
 */
export async function publishEvents(
  deps: PublishDeps,
  publisher: Publisher,
  items: (PublishItem | AppError)[],
  relayRegion: string | null,
  hopCount = 0,
): Promise<(Accepted | AppError)[]> {
  const now = deps.now();
  const ids = createEventIds(now, deps.randomBytes(10), items.length);
  const hashes = await Promise.all(
    items.map(async (item) => (item instanceof AppError ? "" : sha256Hex(item.payload))),
  );

  let current = publisher;
  for (let reloads = 0; reloads <= MAX_RELOADS; reloads++) {
    const plan = orRefusal(() =>
      planPublish(deps, current, items, ids, hashes, { relayRegion, hopCount }, now, reloads),
    );
    if (plan instanceof AppError || plan.events.length === 0) {
      // Refusals are decided by the configuration too, and no commit has proved that what was remembered, the key among it,
      // is the present one.
      if (reloads === 0) {
        current = await reloadPublisher(deps, current.ref);
        continue;
      }
      if (plan instanceof AppError) throw plan;
      return plan.results;
    }
    await orUnavailable(() => retrying(deps.sleep, () => deps.putPayloads(plan.objectKey, plan.bytes)));
    const commit = await orUnavailable(() => commitPlan(deps, current.config, plan, now));
    if (!commit.stale) return settle(deps, plan, commit.holders);
    dropObject(deps, plan);
    current = await reloadPublisher(deps, current.ref);
  }
  throw new AppError("unavailable", "The tenant's configuration is changing too fast. Try again.");
}

interface Plan {
  tenantId: string;
  objectKey: string;
  bytes: Uint8Array;
  events: Event[];
  matched: MatchedDelivery[][];
  deliveries: { eventId: string; endpointId: string; subscriptionId: string }[];
  /** Where each event's answer goes. */
  positions: number[];
  /** One a given item; those of events are filled by the commit. */
  results: (Accepted | AppError)[];
}

function planPublish(
  deps: PublishDeps,
  publisher: Publisher,
  items: (PublishItem | AppError)[],
  ids: string[],
  hashes: string[],
  intake: Pick<Event, "relayRegion" | "hopCount">,
  now: number,
  round: number,
): Plan {
  const { tenantId, match } = publisher.config;
  const results: (Accepted | AppError)[] = [];
  const checked: {
    item: PublishItem;
    index: number;
    matched: MatchedDelivery[];
    fields: ReturnType<typeof checkItem>;
  }[] = [];
  for (const [index, item] of items.entries()) {
    const fields = item instanceof AppError ? item : orRefusal(() => checkItem(publisher, item, deps.maxPayloadBytes));
    if (item instanceof AppError || fields instanceof AppError) results[index] = fields as AppError;
    else checked.push({ item, index, fields, matched: match(fields.input.type) });
  }

  const count = checked.reduce((sum, { matched }) => sum + matched.length, 0);
  if (count > MAX_DELIVERIES_PER_REQUEST) {
    throw new AppError(
      "fan_out_too_large",
      `The request would make ${count} deliveries; ${MAX_DELIVERIES_PER_REQUEST} is the limit. Publish fewer at once.`,
    );
  }
  const classDays = retentionClassDays(
    deps.retentionDays,
    checked.flatMap(({ matched }) => matched.map(({ maxAgeSeconds }) => maxAgeSeconds)),
  );
  // Another configuration may take other items, at other offsets: each round has an object of its own.
  const objectKey = payloadObjectKey(classDays, tenantId, `${ids[0]}${round > 0 ? `.${round}` : ""}`, now);

  let offset = 0;
  const events = checked.map(({ item, index, matched, fields: { input, source } }): Event => {
    const payloadRef = joinPayloadRef(objectKey, offset);
    offset += item.payload.length;
    return {
      id: ids[index]!,
      sourceId: source.id,
      type: input.type,
      schemaVersion: input.schema_version ?? 1,
      orderingKey: input.ordering_key ?? null,
      idempotencyKey: input.idempotency_key ?? null,
      payloadRef,
      payloadSha256: hashes[index]!,
      payloadSize: item.payload.length,
      payloadIsJson: item.payloadIsJson,
      contentType: item.contentType,
      contentEncoding: item.contentEncoding,
      occurredAt: input.occurred_at ?? now,
      relayedAt: now,
      causeEventId: input.cause_event_id ?? null,
      expiresAt: now + retentionMs(classDays),
      dispatchedAt: now,
      deliveryCount: matched.length,
      ...intake,
      payloadErasedAt: null,
    };
  });
  return {
    tenantId,
    objectKey,
    bytes: concatBytes(checked.map(({ item }) => item.payload)),
    events,
    matched: checked.map(({ matched }) => matched),
    deliveries: events.flatMap((event, i) =>
      checked[i]!.matched.map(({ endpointId, subscriptionId }) => ({ eventId: event.id, endpointId, subscriptionId })),
    ),
    positions: checked.map(({ index }) => index),
    results,
  };
}

/** Rings even when no try was confirmed, since one may have taken effect; a doorbell for a row that is not there is dropped. */
async function commitPlan(deps: PublishDeps, { tenantId, revision }: PublishConfig, plan: Plan, now: number) {
  try {
    return await retrying(deps.sleep, () => deps.commitPublish(tenantId, revision, plan.events, plan.deliveries, now));
  } catch (error) {
    const ids = plan.deliveries.map((delivery) => deliveryId({ ...delivery, replayNo: 0 }));
    deps.announce(ids.map((id) => ({ tenantId, deliveryId: id, attemptNumber: 1 })));
    throw error;
  }
}

/** Turns the commit into answers: a key held by another event is that event's duplicate, or a reused key. */
async function settle(deps: PublishDeps, plan: Plan, holders: KeyHolder[]): Promise<(Accepted | AppError)[]> {
  const holderOf = new Map(holders.map((holder) => [holder.index, holder]));
  const calls: DeliveryCall[] = [];
  const lanes = new Map<string, number>();
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
    const matched = plan.matched[i]!;
    plan.results[position] = {
      id: event.id,
      duplicate: false,
      relayedAt: event.relayedAt,
      deliveryCount: matched.length,
      deliveries: matched.slice(0, SHOWN_DELIVERIES).map(({ endpointId, subscriptionId, endpointDisabled }) => ({
        endpointId,
        subscriptionId,
        status: endpointDisabled ? "failed" : "pending",
      })),
    };
    for (const { endpointId, endpointDisabled, lane } of matched) {
      if (endpointDisabled) continue;
      if (lane) {
        lanes.set(endpointId, lane.generation);
        continue;
      }
      const id = deliveryId({ eventId: event.id, endpointId, replayNo: 0 });
      calls.push({ tenantId: plan.tenantId, deliveryId: id, attemptNumber: 1 });
    }
  }
  if (calls.length > 0) deps.announce(calls);
  for (const [endpointId, generation] of lanes) deps.wakeLane({ tenantId: plan.tenantId, endpointId, generation });
  dropRefused(deps, plan, refused);
  await answerDuplicates(deps, plan, duplicates);
  return plan.results;
}

/** Bytes that no event points to do not stay beside those of others, where erasing their first event would miss them. */
function dropRefused(deps: PublishDeps, plan: Plan, refused: Event[]): void {
  if (refused.length === plan.events.length) return dropObject(deps, plan);
  const zeroAll = async () => {
    for (const { payloadRef, payloadSize } of refused) await zeroPayload(deps, payloadRef, payloadSize);
  };
  if (refused.length > 0) deps.background(zeroAll().catch(() => {}));
}

/** For an object that no event points to; if this fails its lifecycle rule removes it. */
function dropObject(deps: PublishDeps, { objectKey }: Plan): void {
  deps.background(deps.deletePayloads([objectKey]).catch(() => {}));
}

/** Each repeats its first event's answer; all of them are one trip. */
async function answerDuplicates(
  deps: PublishDeps,
  plan: Plan,
  duplicates: { position: number; holder: KeyHolder }[],
): Promise<void> {
  if (duplicates.length === 0) return;
  const ids = duplicates.map(({ holder }) => holder.id);
  const lists = await orUnavailable(() => deps.listFirstDeliveries(plan.tenantId, ids, SHOWN_DELIVERIES));
  for (const [i, { position, holder }] of duplicates.entries()) {
    const { id, relayedAt, deliveryCount } = holder;
    plan.results[position] = { id, duplicate: true, relayedAt, deliveryCount, deliveries: lists[i]! };
  }
}

/** Null when the event is the one that holds the key, published again. */
function reusedKey(event: Event, first: KeyHolder): AppError | null {
  const same =
    first.type === event.type &&
    first.schemaVersion === event.schemaVersion &&
    first.orderingKey === event.orderingKey &&
    first.payloadSha256 === event.payloadSha256;
  if (same) return null;
  return new AppError(
    "idempotency_key_reused",
    `This idempotency key belongs to ${first.id}, which has another type, schema_version, ordering_key or payload.`,
  );
}

function orRefusal<T>(check: () => T): T | AppError {
  try {
    return check();
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
}

async function orUnavailable<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    const error = new AppError(
      "unavailable",
      "The relay could not confirm that this is stored. Try again, with the same idempotency_key.",
    );
    error.cause = cause;
    throw error;
  }
}
