import { compilePattern } from "./event-type.ts";
import type { RegisteredTypes } from "./registered-types.ts";

/** A living subscription of a living endpoint, as a publish sees it. */
export interface MatchableSubscription {
  id: string;
  endpointId: string;
  eventTypePattern: string;
  /** The words of its entitlement. */
  entitlementScope: string[];
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
}

/** Gives the deliveries an event of a type owes, in order of endpoint id. */
export type Matcher = (eventType: string) => MatchedDelivery[];

/**
 * Compiles a tenant's subscriptions once. One that has not the scope that a type requires does not match it. Given oldest first: where several of one endpoint match, the event is
 * delivered once and carries the oldest (contract §7). Answers are kept by type, of which there are few.
 */
export function createMatcher(subscriptions: MatchableSubscription[], types: RegisteredTypes): Matcher {
  const compiled = subscriptions.map((subscription) => ({
    ...subscription,
    matches: compilePattern(subscription.eventTypePattern),
  }));
  const known = new Map<string, MatchedDelivery[]>();
  let remembered = 0;
  return (eventType) => {
    let matched = known.get(eventType);
    if (!matched) {
      const requiredScope = types.get(eventType)?.requiredScope ?? null;
      matched = chooseAll(
        compiled.filter(
          ({ matches, entitlementScope }) =>
            matches(eventType) && (requiredScope === null || entitlementScope.includes(requiredScope)),
        ),
      );
      remembered += 1 + matched.length;
      if (remembered > MAX_REMEMBERED) {
        known.clear();
        remembered = 1 + matched.length;
      }
      known.set(eventType, matched);
    }
    return matched;
  };
}

/** Types and their deliveries: a producer that invents types must not grow the isolate's memory. */
const MAX_REMEMBERED = 10_000;

/** One delivery an endpoint. */
function chooseAll(matching: MatchableSubscription[]): MatchedDelivery[] {
  const byEndpoint = new Map<string, MatchedDelivery>();
  for (const { id, endpointId, maxAgeSeconds, endpointDisabled, lane } of matching) {
    if (byEndpoint.has(endpointId)) continue;
    byEndpoint.set(endpointId, { endpointId, subscriptionId: id, maxAgeSeconds, endpointDisabled, lane });
  }
  return [...byEndpoint.values()].toSorted((a, b) => (a.endpointId < b.endpointId ? -1 : 1));
}
