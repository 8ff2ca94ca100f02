import { z } from "zod";
import { chooseVersion, type VersionFault } from "../../core/choose-version.ts";
import { compilePattern } from "../../core/event-type.ts";
import { versionsOf } from "../../core/event-variants.ts";
import { compileFilter, runFilter, type FilterFailure } from "../../core/filter/filter.ts";
import { createFilterInput, type FilteredEvent } from "../../core/filter/filter-input.ts";
import { MAX_FILTER_STEPS } from "../../core/filter/language.ts";
import { locate, type SourcePosition } from "../../core/filter/source.ts";
import { createEventIds, isEventId } from "../../core/ids.ts";
import { toWords } from "../../core/grammar.ts";
import type { Subscription } from "../../core/model.ts";
import { isVersionRetired } from "../../core/subscription-pin.ts";
import { AppError, invalidField } from "../app-error.ts";
import { loadPayload, type ReadEventDeps } from "../event/read-event.ts";
import { FilterSource } from "../field-schemas.ts";
import { parseInput } from "../parse-input.ts";
import { requireReader, type Principal } from "../principal.ts";
import { PublishEventInput } from "../publish/publish-input.ts";
import type { Runtime } from "../runtime.ts";
import type { SubscriptionDeps } from "./deps.ts";

export interface TestSubscriptionDeps extends ReadEventDeps, Pick<Runtime, "randomBytes"> {
  subscriptions: Pick<SubscriptionDeps["subscriptions"], "find">;
  eventTypes: SubscriptionDeps["eventTypes"];
  /** Of a source that is gone too. */
  findSourceName(tenantId: string, id: string): Promise<string | null>;
  maxPayloadBytes: number;
}

/** The fields of an event that is made up; what is left out is as a publish would have it. */
const SampleEvent = z.strictObject({
  ...PublishEventInput.shape,
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
  reason: FilterFailure | "absent" | "event_type" | "subscription_disabled" | "required_scope" | VersionFault | null;
  /** Of the part of the filter that decided so. */
  position: SourcePosition | null;
  steps: number;
}

/** A subscription, or a filter alone: that of one to everything, which is entitled to everything. */
type Tested = Pick<Subscription, "eventTypePattern" | "filter" | "schemaVersion" | "disabledAt"> & {
  entitlement: string[] | null;
};

/**
 * Whether a filter, or a subscription with its pattern, scope and version, takes an event: a stored one, or a sample. Stores
 * nothing. Throws `payload_erased` for an event whose payload is no longer stored.
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
  const event = input.event_id
    ? await findEvent(deps, principal, input.event_id)
    : toSample(deps, input.event ?? {}, tested.schemaVersion);

  const no = (reason: SubscriptionTest["reason"]) => ({
    matched: false,
    skipped: false,
    reason,
    position: null,
    steps: 0,
  });
  if (tested.disabledAt !== null) return no("subscription_disabled");
  if (!compilePattern(tested.eventTypePattern)(event.type)) return no("event_type");
  const type = tested.entitlement && (await deps.eventTypes.find(principal.tenantId, event.type));
  if (type && type.requiredScope !== null && !tested.entitlement!.includes(type.requiredScope)) {
    return no("required_scope");
  }
  const isRetired = (version: number) => isVersionRetired(type, version);
  const choice = chooseVersion(tested.schemaVersion, { versions: event.versions, isRetired });
  if (choice.versionFault !== null) return no(choice.versionFault);
  if (tested.filter === null) return { ...no(null), matched: true };
  const filter = compileFilter(tested.filter);
  if (!filter.ok) {
    return { ...no("invalid_filter"), skipped: true, position: locate(tested.filter, filter.error.position) };
  }
  const { schemaVersion } = choice;
  const bytes = event.payload === null ? payload : await event.payload(schemaVersion);
  const result = runFilter(filter.value, createFilterInput({ ...event, schemaVersion }, bytes), MAX_FILTER_STEPS);
  return {
    matched: result.outcome === "match",
    skipped: result.outcome === "failed",
    reason: result.reason,
    position: result.position === null ? null : locate(tested.filter, result.position),
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

async function findTested(
  deps: TestSubscriptionDeps,
  tenantId: string,
  { filter, subscription_id: id }: TestSubscriptionInput,
): Promise<Tested> {
  if (id == null) {
    return { eventTypePattern: "*", filter: filter!, schemaVersion: null, disabledAt: null, entitlement: null };
  }
  const subscription = await deps.subscriptions.find(tenantId, id);
  if (!subscription) throw invalidField("subscription_id", "no such subscription");
  return { ...subscription, entitlement: toWords(subscription.entitlementScope) };
}

/** An event with the versions it carries. `payload` reads one of them, null where it is not JSON; itself null for a sample's. */
type TestedEvent = FilteredEvent & {
  versions: number[];
  payload: ((version: number) => Promise<Uint8Array | null>) | null;
};

async function findEvent(deps: TestSubscriptionDeps, principal: Principal, id: string): Promise<TestedEvent> {
  const event = isEventId(id) ? await deps.findEvent(principal.tenantId, id, deps.now()) : null;
  if (!event) throw invalidField("event_id", "no such event");
  if (event.payloadErasedAt !== null) throw payloadErased();
  const sourceName = (await deps.findSourceName(principal.tenantId, event.sourceId)) ?? event.sourceId;
  return {
    ...event,
    sourceName,
    versions: versionsOf(event),
    payload: async (version) => {
      const payload = await loadPayload(deps, event, version);
      if (!payload) throw payloadErased();
      return event.payloadIsJson ? payload : null;
    },
  };
}

function payloadErased(): AppError {
  return new AppError("payload_erased", "The payload of this event is no longer stored.");
}

/** Unless it says which version it has, a sample has the one that is asked for. */
function toSample(deps: TestSubscriptionDeps, given: z.infer<typeof SampleEvent>, wanted: number | null): TestedEvent {
  const now = deps.now();
  const schemaVersion = given.schema_version ?? wanted ?? 1;
  return {
    id: createEventIds(now, deps.randomBytes(10), 1)[0]!,
    type: given.type ?? "sample",
    sourceName: given.source ?? "sample",
    schemaVersion,
    orderingKey: given.ordering_key ?? null,
    idempotencyKey: given.idempotency_key ?? null,
    causeEventId: given.cause_event_id ?? null,
    occurredAt: given.occurred_at ?? now,
    relayedAt: now,
    contentType: "application/json",
    versions: [schemaVersion],
    payload: null,
  };
}
