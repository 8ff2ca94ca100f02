import { z } from "zod";
import type { Subscription } from "../../core/model.ts";
import { formatTime } from "../../core/timestamps.ts";
import { presentTime } from "./time.ts";
import { ANSWERS } from "../openapi/registries.ts";
import { RetryPolicy } from "../../core/retry-policy.ts";
import { id, time } from "./fields.ts";

/** An override as it was given: any part of a policy. */
const PartialRetryPolicy = RetryPolicy.partial().register(ANSWERS, { id: "PartialRetryPolicy" });

export const SubscriptionAnswer = z
  .object({
    id: id("sub"),
    endpoint_id: id("ep"),
    event_type_pattern: z.string(),
    filter: z.string().nullable(),
    schema_version: z.int().nullable(),
    entitlement_scope: z.string().nullable(),
    retry_policy: PartialRetryPolicy.nullable(),
    disabled_at: time.nullable(),
    last_disabled_at: time.nullable(),
    created_at: time,
  })
  .register(ANSWERS, { id: "Subscription" });
type SubscriptionAnswer = z.infer<typeof SubscriptionAnswer>;

/** What is not built yet shows the one value it can have. */
export function presentSubscription(subscription: Subscription): SubscriptionAnswer {
  return {
    id: subscription.id,
    endpoint_id: subscription.endpointId,
    event_type_pattern: subscription.eventTypePattern,
    filter: null,
    schema_version: subscription.schemaVersion,
    entitlement_scope: subscription.entitlementScope,
    retry_policy: subscription.retryPolicy,
    disabled_at: presentTime(subscription.disabledAt),
    last_disabled_at: presentTime(subscription.lastDisabledAt),
    created_at: formatTime(subscription.createdAt),
  };
}
