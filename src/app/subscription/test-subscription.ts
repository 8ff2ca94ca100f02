import { z } from "zod";
import { compilePattern } from "../../core/event-type.ts";
import { compileFilter, runFilter, type FilterFailure } from "../../core/filter/filter.ts";
import { createFilterInput, type FilteredEvent } from "../../core/filter/filter-input.ts";
import { MAX_FILTER_STEPS } from "../../core/filter/language.ts";
import { locate } from "../../core/filter/source.ts";
import { createEventIds, isEventId } from "../../core/ids.ts";
import type { Subscription } from "../../core/model.ts";
import { AppError, invalidField, type FieldError } from "../app-error.ts";
import { loadPayload, type ReadEventDeps } from "../event/read-event.ts";
import { FilterSource } from "../field-schemas.ts";
import { parseInput } from "../parse-input.ts";
import { requireReader, type Principal } from "../principal.ts";
import { PublishEventInput } from "../publish/publish-input.ts";
import type { Runtime } from "../runtime.ts";
import type { SubscriptionDeps } from "./deps.ts";

export interface TestSubscriptionDeps extends ReadEventDeps, Pick<Runtime, "randomBytes"> {
  subscriptions: Pick<SubscriptionDeps["subscriptions"], "find">;
  /** Of a source that is gone too. */
  findSourceName(tenantId: string, id: string): Promise<string | null>;
  maxPayloadBytes: number;
}

/** The fields of an event that is made up; what is left out is as a publish would have it. */
const SampleEvent = z.strictObject({
  ...PublishEventInput.omit({ variants: true }).shape,
  type: PublishEventInput.shape.type.nullish(),
});

/** All but the payload of a sample, which is never parsed as the rest is: its numbers are to stay as they are. */
export const TestSubscriptionInput = z.strictObject({
  filter: FilterSource.nullish(),
  subscription_id: z.string().nullish(),
  event_id: z.string().nullish(),
  event: SampleEvent.nullish(),
});
type TestSubscriptionInput = z.infer<typeof TestSubscriptionInput>;

/** What would become of an event. `reason` is null where the filter itself said yes or no, or there is none. */
export interface SubscriptionTest {
  matched: boolean;
  /** The event would be passed over, and the subscription be among its `skipped`. */
  skipped: boolean;
  reason: FilterFailure | "absent" | "event_type" | "subscription_disabled" | null;
  /** Of the part of the filter that decided so. */
  position: NonNullable<FieldError["position"]> | null;
  steps: number;
}

/**
 * Whether a filter, or a subscription with its pattern, takes an event: a stored one, or a sample. Stores nothing. Throws
 * `payload_erased` for an event whose payload is no longer stored.
 */
export async function testSubscription(
  deps: TestSubscriptionDeps,
  principal: Principal,
  { fields, payload }: { fields: unknown; payload: Uint8Array | null },
): Promise<SubscriptionTest> {
  requireReader(principal);
  const input = parseInput(TestSubscriptionInput, fields);
  refuseAmbiguity(input, payload);
  if (payload && payload.length > deps.maxPayloadBytes) {
    throw new AppError("payload_too_large", `The payload is larger than ${deps.maxPayloadBytes} bytes.`);
  }
  const tested = await findTested(deps, principal.tenantId, input);
  const { event, bytes } = input.event_id
    ? await loadEvent(deps, principal, input.event_id)
    : { event: toSample(deps, input.event ?? {}), bytes: payload };

  const no = (reason: SubscriptionTest["reason"]) => ({
    matched: false,
    skipped: false,
    reason,
    position: null,
    steps: 0,
  });
  if (tested.disabledAt !== null) return no("subscription_disabled");
  if (!compilePattern(tested.eventTypePattern)(event.type)) return no("event_type");
  if (tested.filter === null) return { ...no(null), matched: true };
  const filter = compileFilter(tested.filter);
  if (!filter.ok) {
    const position = { offset: filter.error.position, ...locate(tested.filter, filter.error.position) };
    return { ...no("invalid_filter"), skipped: true, position };
  }
  const result = runFilter(filter.value, createFilterInput(event, bytes), MAX_FILTER_STEPS);
  return {
    matched: result.outcome === "match",
    skipped: result.outcome === "failed",
    reason: result.reason,
    position: result.position === null ? null : { offset: result.position, ...locate(tested.filter, result.position) },
    steps: result.steps,
  };
}

function refuseAmbiguity(input: TestSubscriptionInput, payload: Uint8Array | null): void {
  if (input.filter == null && input.subscription_id == null) {
    throw invalidField("filter", "is required, or a subscription_id");
  }
  if (input.filter != null && input.subscription_id != null) {
    throw invalidField("subscription_id", "has a filter of its own: give one of the two");
  }
  const isSample = payload !== null || input.event != null;
  if ((input.event_id == null) !== isSample) {
    throw invalidField("event_id", "is required, or a sample: payload, event or both, and not all");
  }
}

/** A filter alone is that of a subscription to everything. */
async function findTested(
  deps: TestSubscriptionDeps,
  tenantId: string,
  { filter, subscription_id: id }: TestSubscriptionInput,
): Promise<Pick<Subscription, "eventTypePattern" | "filter" | "disabledAt">> {
  if (id == null) return { eventTypePattern: "*", filter: filter!, disabledAt: null };
  const subscription = await deps.subscriptions.find(tenantId, id);
  if (!subscription) throw invalidField("subscription_id", "no such subscription");
  return subscription;
}

async function loadEvent(
  deps: TestSubscriptionDeps,
  principal: Principal,
  id: string,
): Promise<{ event: FilteredEvent; bytes: Uint8Array | null }> {
  const event = isEventId(id) ? await deps.findEvent(principal.tenantId, id, deps.now()) : null;
  if (!event) throw invalidField("event_id", "no such event");
  const payload = await loadPayload(deps, event);
  if (!payload) throw new AppError("payload_erased", "The payload of this event is no longer stored.");
  const sourceName = (await deps.findSourceName(principal.tenantId, event.sourceId)) ?? event.sourceId;
  return { event: { ...event, sourceName }, bytes: event.payloadIsJson ? payload : null };
}

function toSample(deps: TestSubscriptionDeps, given: z.infer<typeof SampleEvent>): FilteredEvent {
  const now = deps.now();
  return {
    id: createEventIds(now, deps.randomBytes(10), 1)[0]!,
    type: given.type ?? "sample",
    sourceName: given.source ?? "sample",
    schemaVersion: given.schema_version ?? 1,
    orderingKey: given.ordering_key ?? null,
    idempotencyKey: given.idempotency_key ?? null,
    causeEventId: given.cause_event_id ?? null,
    occurredAt: given.occurred_at ?? now,
    relayedAt: now,
    contentType: "application/json",
  };
}
