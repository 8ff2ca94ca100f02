import type { Subscription } from "../../core/model.ts";
import { formatTime } from "../../core/timestamps.ts";

/** What is not built yet shows the one value it can have. */
export function presentSubscription(subscription: Subscription) {
  return {
    id: subscription.id,
    endpoint_id: subscription.endpointId,
    event_type_pattern: subscription.eventTypePattern,
    filter: null,
    schema_version: null,
    entitlement_scope: null,
    retry_policy: subscription.retryPolicy,
    disabled_at: null,
    last_disabled_at: null,
    created_at: formatTime(subscription.createdAt),
  };
}
