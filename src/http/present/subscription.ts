import type { Subscription } from "../../core/model.ts";
import { formatTime } from "../../core/timestamps.ts";
import { presentTime } from "./time.ts";

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
    disabled_at: presentTime(subscription.disabledAt),
    last_disabled_at: presentTime(subscription.lastDisabledAt),
    created_at: formatTime(subscription.createdAt),
  };
}
