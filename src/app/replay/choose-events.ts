import { chooseVersion, type VersionChoice } from "../../core/choose-version.ts";
import { compilePattern } from "../../core/event-type.ts";
import { versionsOf } from "../../core/event-variants.ts";
import { compileFilter, runFilter, type Filter } from "../../core/filter/filter.ts";
import { createFilterInput } from "../../core/filter/filter-input.ts";
import { MAX_FILTER_STEPS } from "../../core/filter/language.ts";
import { toWords } from "../../core/grammar.ts";
import type { Event, EventType, Subscription } from "../../core/model.ts";
import type { Backfilled, EventChoice, ReplayFilter, SkipReason } from "../../core/replay.ts";
import { isVersionRetired } from "../../core/subscription-pin.ts";
import { loadPayload, type ReadEventDeps } from "../event/read-event.ts";

export interface ChooseEventsDeps extends Pick<ReadEventDeps, "getPayload"> {
  subscriptions: { find(tenantId: string, id: string): Promise<Subscription | null> };
  eventTypes: { find(tenantId: string, name: string): Promise<EventType | null> };
  /** Of a source that is gone too. */
  findSourceName(tenantId: string, id: string): Promise<string | null>;
  /** What a tenant's configuration is matched under; null when there is no such tenant. */
  findTenantRevision(tenantId: string): Promise<number | null>;
  /** Accepted in the window of the filter and no later than `until`, behind `after`, oldest first. */
  walkEvents(
    of: { tenantId: string; endpointId: string; filter: ReplayFilter },
    after: string,
    until: number,
  ): Promise<{ events: WalkedEvent[]; mayHaveMore: boolean }>;
}

/** An event, and whether its endpoint has got a delivery of it already. */
export type WalkedEvent = Event & { isMeant: boolean; hasDelivery: boolean };

interface Asked {
  tenantId: string;
  endpointId: string;
  subscriptionId: string;
  filter: ReplayFilter;
  includeReplayed: boolean;
}

/** At once. */
const PAYLOADS_READ_AT_ONCE = 6;
/** Of one step, which must not keep a watchdog from its other work. */
const MAX_EVALUATED = 60;

/**
 * Which past events a subscription takes, as a publish would have it now: by its pattern, scope, version and filter. Goes on from
 * `after` until there are `room` of them. A subscription that is gone or disabled takes what its pattern does, for the ledger to
 * refuse.
 */
export async function chooseEvents(
  deps: ChooseEventsDeps,
  asked: Asked,
  after: string,
  until: number,
  room: number,
): Promise<EventChoice> {
  const { tenantId } = asked;
  const revision = (await deps.findTenantRevision(tenantId)) ?? -1;
  const subscription = await deps.subscriptions.find(tenantId, asked.subscriptionId);
  const { events, mayHaveMore } = await deps.walkEvents(asked, after, until);
  const judge = createJudge(deps, tenantId, subscription);
  const choice: EventChoice = {
    chosen: [],
    lookedAt: 0,
    found: 0,
    skipped: {},
    evaluated: 0,
    afterEventId: null,
    revision,
  };
  let last: string | null = null;
  for (let i = 0; i < events.length;) {
    if (choice.chosen.length === room || choice.evaluated >= MAX_EVALUATED) return { ...choice, afterEventId: last };
    const some = events.slice(i, i + Math.min(PAYLOADS_READ_AT_ONCE, room - choice.chosen.length));
    const verdicts = await Promise.all(
      some.map((event) => (event.isMeant && (asked.includeReplayed || !event.hasDelivery) ? judge(event) : NO)),
    );
    for (const verdict of verdicts) {
      if (verdict.isEvaluated) choice.evaluated++;
      if (verdict.take === null) continue;
      choice.found++;
      if (typeof verdict.take === "string") choice.skipped[verdict.take] = (choice.skipped[verdict.take] ?? 0) + 1;
      else choice.chosen.push(verdict.take);
    }
    i += some.length;
    choice.lookedAt += some.length;
    last = some.at(-1)!.id;
  }
  return { ...choice, afterEventId: mayHaveMore ? last : null };
}

/** `take`: what is to be delivered, or why not though it is meant; null where the subscription does not take it. */
interface Verdict {
  take: Backfilled | SkipReason | null;
  isEvaluated: boolean;
}

const NO: Verdict = { take: null, isEvaluated: false };

function createJudge(deps: ChooseEventsDeps, tenantId: string, subscription: Subscription | null) {
  if (subscription === null) {
    return async (): Promise<Verdict> => ({ take: "subscription_deleted", isEvaluated: false });
  }
  const matches = compilePattern(subscription.eventTypePattern);
  const words = toWords(subscription.entitlementScope);
  const filter = subscription.filter === null ? null : compileFilter(subscription.filter);
  const typeOf = once((name: string) => deps.eventTypes.find(tenantId, name));
  const sourceNameOf = once(async (id: string) => (await deps.findSourceName(tenantId, id)) ?? id);

  return async (event: WalkedEvent): Promise<Verdict> => {
    if (!matches(event.type)) return NO;
    const type = await typeOf(event.type);
    if (type !== null && type.requiredScope !== null && !words.includes(type.requiredScope)) return NO;
    const isRetired = (version: number) => isVersionRetired(type, version);
    const choice = chooseVersion(subscription.schemaVersion, { versions: versionsOf(event), isRetired });
    if (choice.versionFault !== null) return { take: choice.versionFault, isEvaluated: false };
    if (filter === null) return { take: taken(event, choice, null), isEvaluated: false };
    if (!filter.ok) return { take: "filter_failed", isEvaluated: false };
    return ask(event, choice, filter.value, await sourceNameOf(event.sourceId));
  };

  async function ask(event: Event, choice: VersionChoice, compiled: Filter, sourceName: string): Promise<Verdict> {
    const payload = await loadPayload(deps, event, choice.schemaVersion);
    if (payload === null) return { take: "payload_erased", isEvaluated: true };
    const input = createFilterInput(
      { ...event, sourceName, schemaVersion: choice.schemaVersion },
      event.payloadIsJson ? payload : null,
    );
    const result = runFilter(compiled, input, MAX_FILTER_STEPS);
    if (result.outcome === "failed") return { take: "filter_failed", isEvaluated: true };
    return { take: result.outcome === "match" ? taken(event, choice, result.steps) : null, isEvaluated: true };
  }
}

function taken({ id }: Event, { schemaVersion }: VersionChoice, filterSteps: number | null): Backfilled {
  return { eventId: id, schemaVersion, filterSteps };
}

/** Asks once for each. */
function once<T>(ask: (name: string) => Promise<T>): (name: string) => Promise<T> {
  const known = new Map<string, Promise<T>>();
  return (name) => {
    const asked = known.get(name) ?? ask(name);
    known.set(name, asked);
    return asked;
  };
}
