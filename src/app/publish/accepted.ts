import type { SkippedSubscription } from "../../core/match.ts";

export interface AcceptedDelivery {
  endpointId: string;
  subscriptionId: string;
  status: "pending" | "failed";
}

/** How many deliveries the answer of a publish shows. */
export const SHOWN_DELIVERIES = 100;

/** How many subscriptions that were passed over are kept with an event, and shown. */
export const SHOWN_SKIPPED = 100;

/** What a producer is told of one event; `deliveries` holds the first SHOWN_DELIVERIES, `skipped` the first SHOWN_SKIPPED. */
export interface Accepted {
  id: string;
  duplicate: boolean;
  relayedAt: number;
  deliveryCount: number;
  deliveries: AcceptedDelivery[];
  skippedCount: number;
  skipped: SkippedSubscription[];
}
