import { compilePattern } from "./event-type.ts";
import { runFilter, type FilterFailure, type FilterResult } from "./filter/filter.ts";
import type { FilterCache } from "./filter/filter-cache.ts";
import type { FilterInput } from "./filter/filter-input.ts";
import { MAX_EVENT_STEPS, MAX_FILTER_STEPS } from "./filter/language.ts";

/** A living subscription of a living endpoint, as a publish sees it. */
export interface MatchableSubscription {
  id: string;
  endpointId: string;
  eventTypePattern: string;
  /** Its source; null matches every event of the pattern. */
  filter: string | null;
  /** Of the policy that its deliveries get. */
  maxAgeSeconds: number;
  /** Its deliveries are born failed, so that they are on record. */
  endpointDisabled: boolean;
  /** Null where queues deliver. */
  lane: { generation: number } | null;
}

/** One delivery an event owes, with what the answer to its producer and its retention need to know. */
export interface MatchedDelivery {
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
  input: FilterInput;
  /** Milliseconds; only differences count. */
  clock(): number;
}

/** Gives what an event of a type owes. Without `filtering` null, if there is a filter to be asked. */
export type Matcher = (eventType: string, filtering: Filtering | null) => Matched | null;

/**
 * Compiles a tenant's subscriptions once. Given oldest first: where several of one endpoint match, the event is
 * delivered once and carries the oldest (contract §7). Answers are kept by type, of which there are few; of types that
 * somebody filters, who is to be asked.
 */
export function createMatcher(subscriptions: MatchableSubscription[], filters: FilterCache): Matcher {
  const compiled = subscriptions.map((subscription) => ({
    ...subscription,
    matches: compilePattern(subscription.eventTypePattern),
  }));
  const known = new Map<string, { candidates: Candidate[]; matched: Matched | null }>();
  let remembered = 0;
  return (eventType, filtering) => {
    let answer = known.get(eventType);
    if (!answer) {
      const candidates = compiled.filter(({ matches }) => matches(eventType));
      const isFiltered = candidates.some(({ filter }) => filter !== null);
      answer = isFiltered
        ? { candidates, matched: null }
        : { candidates: [], matched: { deliveries: chooseAll(candidates), skipped: [], steps: 0 } };
      const size = 1 + (answer.matched?.deliveries.length ?? candidates.length);
      remembered += size;
      if (remembered > MAX_REMEMBERED) {
        known.clear();
        remembered = size;
      }
      known.set(eventType, answer);
    }
    return answer.matched ?? (filtering && matchFiltered(answer.candidates, filters, filtering));
  };
}

/** Types and their deliveries: a producer that invents types must not grow the isolate's memory. */
const MAX_REMEMBERED = 10_000;

type Candidate = MatchableSubscription & { filterMatch?: FilterCost };

/** Asks every filter, within what one event may cost. */
function matchFiltered(candidates: Candidate[], filters: FilterCache, { input, clock }: Filtering): Matched {
  const passed: Candidate[] = [];
  const skipped: SkippedSubscription[] = [];
  let steps = 0;
  let askedAt = clock();
  for (const candidate of candidates) {
    if (candidate.filter === null) {
      passed.push(candidate);
      continue;
    }
    const result = ask(candidate.filter, filters, input, MAX_EVENT_STEPS - steps);
    const answeredAt = clock();
    const ms = answeredAt > askedAt ? Math.round((answeredAt - askedAt) * 1_000) / 1_000 : null;
    askedAt = answeredAt;
    steps += result.steps;
    if (result.outcome === "match") passed.push({ ...candidate, filterMatch: { steps: result.steps, ms } });
    else if (result.outcome === "failed") skipped.push({ subscriptionId: candidate.id, reason: result.reason });
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
  for (const { id, endpointId, maxAgeSeconds, endpointDisabled, lane, filterMatch } of matching) {
    if (byEndpoint.has(endpointId)) continue;
    byEndpoint.set(endpointId, {
      endpointId,
      subscriptionId: id,
      maxAgeSeconds,
      endpointDisabled,
      lane,
      ...(filterMatch && { filterMatch }),
    });
  }
  return [...byEndpoint.values()].toSorted((a, b) => (a.endpointId < b.endpointId ? -1 : 1));
}
