import type { VersionFault } from "./choose-version.ts";
import type { MatchedDelivery } from "./match.ts";

/** Deliveries of one event that its commit writes, whatever they are. */
export const MAX_AT_ONCE = 1_000;
/** What one batch makes of the rest. Of about 50 bytes each, far from any limit on a row or a parameter. */
export const DELIVERIES_PER_PART = 1_000;
/** A part that is open for longer has lost whoever was to expand it. */
export const FAN_OUT_OVERDUE_MS = 10_000;

/** What one event owes: with its commit, and after it, part by part. */
export interface FanOut {
  atOnce: MatchedDelivery[];
  parts: MatchedDelivery[][];
}

/** Where a part of the rest stands, and what of each delivery is to be kept until it is a row. */
export interface FanOutPart {
  eventId: string;
  part: number;
  deliveries: OwedDelivery[];
}

/** With a fault, it is born failed. What its filter cost stands behind a delivery that has one. */
export type OwedDelivery = [
  endpointId: string,
  subscriptionId: string,
  schemaVersion: number,
  versionFault?: VersionFault | null,
  filterSteps?: number,
  filterMs?: number | null,
];

export function toOwed(delivery: Omit<MatchedDelivery, "maxAgeSeconds" | "endpointDisabled" | "lane">): OwedDelivery {
  const { endpointId, subscriptionId, schemaVersion, versionFault, filterMatch } = delivery;
  if (filterMatch) {
    return [endpointId, subscriptionId, schemaVersion, versionFault, filterMatch.steps, filterMatch.ms];
  }
  return versionFault === null
    ? [endpointId, subscriptionId, schemaVersion]
    : [endpointId, subscriptionId, schemaVersion, versionFault];
}

/**
 * Divides what an event owes. Up to MAX_AT_ONCE all of it commits with the event. Of more, those that go through a lane do,
 * since their place in it is that of the event's acceptance, and the `first`, which the answer shows; order stays as given.
 */
export function splitFanOut(matched: MatchedDelivery[], first: number): FanOut {
  if (matched.length <= MAX_AT_ONCE) return { atOnce: matched, parts: [] };
  const isAtOnce = ({ lane }: MatchedDelivery, index: number) => index < first || lane !== null;
  const later = matched.filter((delivery, index) => !isAtOnce(delivery, index));
  const parts: MatchedDelivery[][] = [];
  for (let i = 0; i < later.length; i += DELIVERIES_PER_PART) parts.push(later.slice(i, i + DELIVERIES_PER_PART));
  return { atOnce: matched.filter(isAtOnce), parts };
}
