export interface AcceptedDelivery {
  endpointId: string;
  subscriptionId: string;
  status: "pending" | "failed";
}

/** How many deliveries the answer of a publish shows. */
export const SHOWN_DELIVERIES = 100;

/** What a producer is told of one event; `deliveries` holds the first SHOWN_DELIVERIES. */
export interface Accepted {
  id: string;
  duplicate: boolean;
  relayedAt: number;
  deliveryCount: number;
  deliveries: AcceptedDelivery[];
}
