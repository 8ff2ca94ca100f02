import { chooseVersion, isBetter, type VersionChoice } from "./choose-version.ts";
import { compilePattern } from "./event-type.ts";
import { runFilter, type FilterFailure, type FilterResult } from "./filter/filter.ts";
import type { FilterCache } from "./filter/filter-cache.ts";
import type { FilterInput } from "./filter/filter-input.ts";
import { MAX_EVENT_STEPS, MAX_FILTER_STEPS } from "./filter/language.ts";
import type { RegisteredTypes } from "./registered-types.ts";

/** A living subscription of a living endpoint, as a publish sees it. */
export interface MatchableSubscription {
  id: string;
  endpointId: string;
  eventTypePattern: string;
  /** Its source; null matches every event of the pattern. */
  filter: string | null;
  /** The words of its entitlement. */
  entitlementScope: string[];
  /** The version it asks for; null for the newest. */
  schemaVersion: number | null;
  /** Of the policy that its deliveries get. */
  maxAgeSeconds: number;
  /** Its deliveries are born failed, so that they are on record. */
  endpointDisabled: boolean;
  /** Null where queues deliver. */
  lane: { generation: number } | null;
}

/** One delivery an event owes, with what the answer to its producer and its retention need to know. */
export interface MatchedDelivery extends VersionChoice {
  endpointId: string;
  subscriptionId: string;
  maxAgeSeconds: number;
  endpointDisabled: boolean;
  lane: { generation: number } | null;
  /** What its subscription's filter cost, when it has one. */
  filterMatch?: FilterCost;
}

export interface FilterCost {
  steps: number;
  /** Null where the clock stands still while code runs. */
  ms: number | null;
}

/** A subscription that was passed over, since its filter said neither yes nor no. */
export interface SkippedSubscription {
  subscriptionId: string;
  reason: FilterFailure;
}

/** What an event owes, in order of endpoint id, and who was passed over, oldest first. */
export interface Matched {
  deliveries: MatchedDelivery[];
  skipped: SkippedSubscription[];
  /** Of all filters together. */
  steps: number;
}

/** What filters are evaluated with. */
export interface Filtering {
  /** Of the event in a version that it carries. */
  inputOf(schemaVersion: number): FilterInput;
  /** Milliseconds; only differences count. */
  clock(): number;
}

/**
 * Gives what an event of a type owes that carries these versions, its own first. Without `filtering` null, if there is a filter
 * to be asked.
 */
export type Matcher = (eventType: string, versions: readonly number[], filtering: Filtering | null) => Matched | null;

/**
 * Compiles a tenant's subscriptions once, given oldest first. One that has not the scope that a type requires does not match it.
 * Where several of one endpoint match, filters and all, the event is delivered once, in the highest version that one of them gets,
 * and carries the oldest of those (contract §7). Answers are kept by type and versions, of which there are few; where somebody
 * filters, who is to be asked.
 */
export function createMatcher(
  subscriptions: MatchableSubscription[],
  types: RegisteredTypes,
  filters: FilterCache,
): Matcher {
  const compiled = subscriptions.map((subscription) => ({
    ...subscription,
    matches: compilePattern(subscription.eventTypePattern),
  }));
  const findCandidates = (eventType: string, versions: readonly number[]): Candidate[] => {
    const type = types.get(eventType);
    const requiredScope = type?.requiredScope ?? null;
    const carried = { versions, isRetired: (version: number) => type?.versions.get(version)?.isRetired ?? false };
    return compiled
      .filter(
        ({ matches, entitlementScope }) =>
          matches(eventType) && (requiredScope === null || entitlementScope.includes(requiredScope)),
      )
      .map((subscription) => ({ subscription, choice: chooseVersion(subscription.schemaVersion, carried) }));
  };
  const known = new Map<string, { candidates: Candidate[]; matched: Matched | null }>();
  let remembered = 0;
  return (eventType, versions, filtering) => {
    // No type has a space in it.
    const key = `${versions.join(",")} ${eventType}`;
    let answer = known.get(key);
    if (!answer) {
      const candidates = findCandidates(eventType, versions);
      const isFiltered = candidates.some(({ subscription }) => subscription.filter !== null);
      answer = isFiltered
        ? { candidates, matched: null }
        : { candidates: [], matched: { deliveries: chooseAll(candidates), skipped: [], steps: 0 } };
      const size = 1 + (answer.matched?.deliveries.length ?? candidates.length);
      remembered += size;
      if (remembered > MAX_REMEMBERED) {
        known.clear();
        remembered = size;
      }
      known.set(key, answer);
    }
    return answer.matched ?? (filtering && matchFiltered(answer.candidates, versions[0]!, filters, filtering));
  };
}

/** Types and their deliveries: a producer that invents types must not grow the isolate's memory. */
const MAX_REMEMBERED = 10_000;

/** A subscription that may match, and what it would be sent. */
interface Candidate {
  subscription: MatchableSubscription;
  choice: VersionChoice;
  filterMatch?: FilterCost;
}

/**
 * Asks every filter, within what one event may cost, of the payload that its subscription would be sent. Where nobody gets the
 * version that it asks for, the event's own is looked at, and only a plain no keeps what cannot be delivered off the record: a
 * field that this version lacks, or has otherwise, says nothing of the one that was asked for.
 */
function matchFiltered(
  candidates: Candidate[],
  ownVersion: number,
  filters: FilterCache,
  { inputOf, clock }: Filtering,
): Matched {
  const passed: Candidate[] = [];
  const skipped: SkippedSubscription[] = [];
  let steps = 0;
  let askedAt = clock();
  for (const candidate of candidates) {
    const { subscription, choice } = candidate;
    if (subscription.filter === null) {
      passed.push(candidate);
      continue;
    }
    const isToBeHad = choice.versionFault === null;
    const input = inputOf(isToBeHad ? choice.schemaVersion : ownVersion);
    const result = ask(subscription.filter, filters, input, MAX_EVENT_STEPS - steps);
    const answeredAt = clock();
    const ms = answeredAt > askedAt ? Math.round((answeredAt - askedAt) * 1_000) / 1_000 : null;
    askedAt = answeredAt;
    steps += result.steps;
    if (result.outcome === "match" || (!isToBeHad && result.reason !== null)) {
      passed.push({ ...candidate, filterMatch: { steps: result.steps, ms } });
    } else if (result.outcome === "failed") skipped.push({ subscriptionId: subscription.id, reason: result.reason });
  }
  return { deliveries: chooseAll(passed), skipped, steps };
}

/** A filter that other filters have left too few steps is not to blame. */
function ask(source: string, filters: FilterCache, input: FilterInput, left: number): FilterResult {
  const filter = filters(source);
  if (filter === null) return { outcome: "failed", reason: "invalid_filter", position: null, steps: 0 };
  const result = runFilter(filter, input, Math.min(left, MAX_FILTER_STEPS));
  return result.reason === "filter_work_exceeded" && left < MAX_FILTER_STEPS
    ? { ...result, reason: "event_work_exceeded" }
    : result;
}

/** One delivery an endpoint. */
function chooseAll(matching: Candidate[]): MatchedDelivery[] {
  const byEndpoint = new Map<string, MatchedDelivery>();
  for (const { subscription, choice, filterMatch } of matching) {
    const { id, endpointId, maxAgeSeconds, endpointDisabled, lane } = subscription;
    const older = byEndpoint.get(endpointId);
    if (older && !isBetter(choice, older)) continue;
    byEndpoint.set(endpointId, {
      endpointId,
      subscriptionId: id,
      maxAgeSeconds,
      endpointDisabled,
      lane,
      ...choice,
      ...(filterMatch && { filterMatch }),
    });
  }
  return [...byEndpoint.values()].toSorted((a, b) => (a.endpointId < b.endpointId ? -1 : 1));
}
