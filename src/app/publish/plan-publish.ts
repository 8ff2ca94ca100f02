import { concatBytes } from "../../core/bytes.ts";
import type { VersionChoice } from "../../core/choose-version.ts";
import { storedSize, versionsOf, type EventVariant } from "../../core/event-variants.ts";
import { splitFanOut, toOwed, type FanOut, type FanOutPart } from "../../core/fan-out.ts";
import { createFilterInput, type FilteredEvent, type FilterInput } from "../../core/filter/filter-input.ts";
import { MAX_REQUEST_STEPS } from "../../core/filter/language.ts";
import { MAX_REQUEST_CHECK_STEPS } from "../../core/json-schema-validate.ts";
import type { FilterCost, Matched, SkippedSubscription } from "../../core/match.ts";
import type { Event } from "../../core/model.ts";
import { joinPayloadRef, payloadObjectKey } from "../../core/payload-ref.ts";
import { retentionClassDays, retentionMs } from "../../core/retention.ts";
import { AppError } from "../app-error.ts";
import type { Clock } from "../runtime.ts";
import { SHOWN_DELIVERIES, SHOWN_SKIPPED, type Accepted } from "./accepted.ts";
import type { Publisher } from "./publish-config.ts";
import { checkItem, readItem, type PublishItem, type ReadItem } from "./publish-input.ts";
import { orRefusal } from "./refusals.ts";

/** Deliveries that one request may owe: what one atomic commit bears, if all of them go through lanes. */
const MAX_DELIVERIES_PER_REQUEST = 25_000;

/** A delivery that commits with its event. */
export interface PlannedDelivery extends VersionChoice {
  eventId: string;
  endpointId: string;
  subscriptionId: string;
  filterMatch?: FilterCost;
}

/** A filter that failed, and the first event of the request that it failed on. */
export type FailedFilter = SkippedSubscription & { eventId: string };

/** What one commit would make of a request, by the configuration it was planned with. */
export interface Plan {
  tenantId: string;
  objectKey: string;
  bytes: Uint8Array;
  events: Event[];
  /** One an event. */
  fanOuts: FanOut[];
  /** Of all events, those that commit with them, and the rest. */
  deliveries: PlannedDelivery[];
  parts: FanOutPart[];
  failedFilters: FailedFilter[];
  /** Where each event's answer goes. */
  positions: number[];
  /** One a given item; those of events are filled by the commit. */
  results: (Accepted | AppError)[];
  /** What the configuration refuses now, and may have been accepted under another: by its key. */
  refusedKeys: RefusedKey[];
}

/** What the holder of an idempotency key is compared with. */
export type Keyed = Pick<
  Event,
  "sourceId" | "idempotencyKey" | "type" | "schemaVersion" | "orderingKey" | "payloadSha256" | "variants"
>;

export type RefusedKey = Keyed & { position: number };

/** SHA-256 in hex, of an item's payload and its variants' as they were given. */
export interface PayloadHashes {
  payload: string;
  variants: string[];
}

/** Checks each item on its own. Throws `fan_out_too_large`. */
export function planPublish(
  deps: { maxPayloadBytes: number; retentionDays: number } & Clock,
  publisher: Publisher,
  items: (PublishItem | AppError)[],
  ids: string[],
  hashes: PayloadHashes[],
  intake: Pick<Event, "relayRegion" | "hopCount">,
  now: number,
  round: number,
): Plan {
  const { tenantId, match } = publisher.config;
  const results: (Accepted | AppError)[] = [];
  const checked: {
    item: PublishItem;
    index: number;
    matched: Matched;
    fields: ReadItem;
  }[] = [];
  const refusedKeys: RefusedKey[] = [];
  let steps = 0;
  const budget = { stepsLeft: MAX_REQUEST_CHECK_STEPS };
  for (const [index, item] of items.entries()) {
    const fields = item instanceof AppError ? item : orRefusal(() => readItem(publisher, item, deps.maxPayloadBytes));
    if (item instanceof AppError || fields instanceof AppError) {
      results[index] = fields as AppError;
      continue;
    }
    const refusal = orRefusal(() => checkItem(publisher, item, fields, budget));
    if (refusal instanceof AppError) {
      results[index] = refusal;
      if (fields.input.idempotency_key) refusedKeys.push({ position: index, ...keyedOf(fields, hashes[index]!) });
      continue;
    }
    const filtering = { inputOf: createInputs(fields, item, ids[index]!, now), clock: deps.clock };
    const matched = match(fields.input.type, versionsOf(fields), steps < MAX_REQUEST_STEPS ? filtering : null);
    steps += matched?.steps ?? 0;
    if (matched) checked.push({ item, index, fields, matched });
    else results[index] = tooMuchToFilter();
  }

  const count = checked.reduce((sum, { matched }) => sum + matched.deliveries.length, 0);
  if (count > MAX_DELIVERIES_PER_REQUEST) {
    throw new AppError(
      "fan_out_too_large",
      `The request would make ${count} deliveries; ${MAX_DELIVERIES_PER_REQUEST} is the limit. Publish fewer at once.`,
    );
  }
  const classDays = retentionClassDays(
    deps.retentionDays,
    checked.flatMap(({ matched }) => matched.deliveries.map(({ maxAgeSeconds }) => maxAgeSeconds)),
  );
  // Another configuration may take other items, at other offsets: each round has an object of its own.
  const objectKey = payloadObjectKey(classDays, tenantId, `${ids[0]}${round > 0 ? `.${round}` : ""}`, now);

  const fanOuts = checked.map(({ matched }) => splitFanOut(matched.deliveries, SHOWN_DELIVERIES));
  let offset = 0;
  const events = checked.map(({ item, index, matched, fields }, position): Event => {
    const { input } = fields;
    const keyed = keyedOf(fields, hashes[index]!);
    const payloadRef = joinPayloadRef(objectKey, offset);
    offset += storedSize({ payloadSize: item.payload.length, variants: keyed.variants });
    return {
      ...keyed,
      id: ids[index]!,
      payloadRef,
      payloadSize: item.payload.length,
      payloadIsJson: item.payloadIsJson,
      contentType: item.contentType,
      contentEncoding: item.contentEncoding,
      occurredAt: input.occurred_at ?? now,
      relayedAt: now,
      causeEventId: input.cause_event_id ?? null,
      expiresAt: now + retentionMs(classDays),
      dispatchedAt: fanOuts[position]!.parts.length === 0 ? now : null,
      deliveryCount: matched.deliveries.length,
      ...intake,
      payloadErasedAt: null,
      skippedCount: matched.skipped.length,
      skipped: matched.skipped.slice(0, SHOWN_SKIPPED),
    };
  });
  return {
    tenantId,
    objectKey,
    bytes: concatBytes(
      checked.flatMap(({ item, fields }) => [item.payload, ...fields.variants.map(({ payload }) => payload)]),
    ),
    events,
    fanOuts,
    deliveries: events.flatMap(({ id: eventId }, i) =>
      fanOuts[i]!.atOnce.map((owed): PlannedDelivery => ({
        eventId,
        endpointId: owed.endpointId,
        subscriptionId: owed.subscriptionId,
        schemaVersion: owed.schemaVersion,
        versionFault: owed.versionFault,
        ...(owed.filterMatch && { filterMatch: owed.filterMatch }),
      })),
    ),
    parts: events.flatMap(({ id: eventId }, i) =>
      fanOuts[i]!.parts.map((part, number) => ({
        eventId,
        part: number,
        deliveries: part.map(toOwed),
      })),
    ),
    failedFilters: failedFilters(events.map(({ id }, i) => [id, checked[i]!.matched.skipped])),
    positions: checked.map(({ index }) => index),
    results,
    refusedKeys,
  };
}

function keyedOf({ input, source, schemaVersion, variants }: ReadItem, hashes: PayloadHashes): Keyed {
  return {
    sourceId: source.id,
    type: input.type,
    schemaVersion,
    orderingKey: input.ordering_key ?? null,
    idempotencyKey: input.idempotency_key ?? null,
    payloadSha256: hashes.payload,
    variants: variants.map((variant): EventVariant => ({
      schemaVersion: variant.schemaVersion,
      payloadSize: variant.payload.length,
      payloadSha256: hashes.variants[variant.index]!,
    })),
  };
}

/**
 * What filters are asked of, an event that is not one yet: by version, each read when the first filter asks. They are of this one
 * event alone, since five hundred parsed payloads at once are more than an isolate holds.
 */
function createInputs(
  { input, source, schemaVersion, variants }: ReadItem,
  { contentType, payload, payloadIsJson }: PublishItem,
  id: string,
  now: number,
): (version: number) => FilterInput {
  const event: FilteredEvent = {
    id,
    type: input.type,
    sourceName: source.name,
    schemaVersion,
    orderingKey: input.ordering_key ?? null,
    idempotencyKey: input.idempotency_key ?? null,
    causeEventId: input.cause_event_id ?? null,
    occurredAt: input.occurred_at ?? now,
    relayedAt: now,
    contentType,
  };
  const payloads = new Map([
    [schemaVersion, payload],
    ...variants.map((one) => [one.schemaVersion, one.payload] as const),
  ]);
  const inputs = new Map<number, FilterInput>();
  return (version) => {
    const known = inputs.get(version);
    if (known) return known;
    const bytes = payloadIsJson ? payloads.get(version)! : null;
    const made = createFilterInput({ ...event, schemaVersion: version }, bytes);
    inputs.set(version, made);
    return made;
  };
}

function tooMuchToFilter(): AppError {
  return new AppError(
    "fan_out_too_large",
    "Filters have used up what one request may cost before this event. Publish fewer at once: this one, and those after it.",
  );
}

/** Each once: a flag says that a filter fails, not how often. */
function failedFilters(skipped: [eventId: string, SkippedSubscription[]][]): FailedFilter[] {
  const failed = new Map<string, FailedFilter>();
  for (const [eventId, some] of skipped) {
    for (const one of some) if (!failed.has(one.subscriptionId)) failed.set(one.subscriptionId, { ...one, eventId });
  }
  return [...failed.values()];
}
