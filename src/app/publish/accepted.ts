export interface AcceptedDelivery {
  endpointId: string;
  subscriptionId: string;
  status: "pending" | "failed";
}

/** What a producer is told of one event; `deliveries` holds the first 100. */
export interface Accepted {
  id: string;
  duplicate: boolean;
  relayedAt: number;
  deliveryCount: number;
  deliveries: AcceptedDelivery[];
}
