import { compilePattern } from "./event-type.ts";
import { chooseVersion, isBetter, type CarriedVersions, type VersionChoice } from "./choose-version.ts";
import type { RegisteredTypes } from "./registered-types.ts";

/** A living subscription of a living endpoint, as a publish sees it. */
export interface MatchableSubscription {
  id: string;
  endpointId: string;
  eventTypePattern: string;
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
}

/** Gives the deliveries an event of a type that carries these versions owes, in order of endpoint id. */
export type Matcher = (eventType: string, versions: readonly number[]) => MatchedDelivery[];

/**
 * Compiles a tenant's subscriptions once. One that has not the scope that a type requires does not match it. Given oldest first: where several of one endpoint match, the event is
 * delivered once, in the highest version that one of them gets, and carries the oldest of those (contract §7). Answers are kept by
 * type and versions, of which there are few.
 */
export function createMatcher(subscriptions: MatchableSubscription[], types: RegisteredTypes): Matcher {
  const compiled = subscriptions.map((subscription) => ({
    ...subscription,
    matches: compilePattern(subscription.eventTypePattern),
  }));
  const known = new Map<string, MatchedDelivery[]>();
  let remembered = 0;
  return (eventType, versions) => {
    // No type has a space in it.
    const key = `${versions.join(",")} ${eventType}`;
    let matched = known.get(key);
    if (!matched) {
      const type = types.get(eventType);
      const requiredScope = type?.requiredScope ?? null;
      matched = chooseAll(
        compiled.filter(
          ({ matches, entitlementScope }) =>
            matches(eventType) && (requiredScope === null || entitlementScope.includes(requiredScope)),
        ),
        { versions, isRetired: (version) => type?.versions.get(version)?.isRetired ?? false },
      );
      remembered += 1 + matched.length;
      if (remembered > MAX_REMEMBERED) {
        known.clear();
        remembered = 1 + matched.length;
      }
      known.set(key, matched);
    }
    return matched;
  };
}

/** Types and their deliveries: a producer that invents types must not grow the isolate's memory. */
const MAX_REMEMBERED = 10_000;

/** One delivery an endpoint. */
function chooseAll(matching: MatchableSubscription[], carried: CarriedVersions): MatchedDelivery[] {
  const byEndpoint = new Map<string, MatchedDelivery>();
  for (const { id, endpointId, maxAgeSeconds, endpointDisabled, lane, schemaVersion } of matching) {
    const choice = chooseVersion(schemaVersion, carried);
    const older = byEndpoint.get(endpointId);
    if (older && !isBetter(choice, older)) continue;
    byEndpoint.set(endpointId, { endpointId, subscriptionId: id, maxAgeSeconds, endpointDisabled, lane, ...choice });
  }
  return [...byEndpoint.values()].toSorted((a, b) => (a.endpointId < b.endpointId ? -1 : 1));
}
