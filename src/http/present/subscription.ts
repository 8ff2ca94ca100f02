import { z } from "zod";
import type { SubscriptionTest } from "../../app/subscription/test-subscription.ts";
import type { Subscription } from "../../core/model.ts";
import { formatTime } from "../../core/timestamps.ts";
import { presentTime } from "./time.ts";
import { SourcePosition } from "../problem.ts";
import { ANSWERS } from "../openapi/registries.ts";
import { RetryPolicy } from "../../core/retry-policy.ts";
import { id, time } from "./fields.ts";

/** An override as it was given: any part of a policy. */
export const PartialRetryPolicy = RetryPolicy.partial().register(ANSWERS, { id: "PartialRetryPolicy" });

export const SubscriptionAnswer = z
  .object({
    id: id("sub"),
    endpoint_id: id("ep"),
    event_type_pattern: z.string(),
    filter: z.string().nullable(),
    schema_version: z.int().nullable(),
    entitlement_scope: z.string().nullable(),
    retry_policy: PartialRetryPolicy.nullable(),
    filter_failed_at: time.nullable(),
    filter_failed_reason: z.string().nullable(),
    filter_failed_event_id: id("evt").nullable(),
    disabled_at: time.nullable(),
    last_disabled_at: time.nullable(),
    created_at: time,
  })
  .register(ANSWERS, { id: "Subscription" });
type SubscriptionAnswer = z.infer<typeof SubscriptionAnswer>;

export function presentSubscription(subscription: Subscription): SubscriptionAnswer {
  return {
    id: subscription.id,
    endpoint_id: subscription.endpointId,
    event_type_pattern: subscription.eventTypePattern,
    filter: subscription.filter,
    filter_failed_at: presentTime(subscription.filterFailure?.at ?? null),
    filter_failed_reason: subscription.filterFailure?.reason ?? null,
    filter_failed_event_id: subscription.filterFailure?.eventId ?? null,
    schema_version: subscription.schemaVersion,
    entitlement_scope: subscription.entitlementScope,
    retry_policy: subscription.retryPolicy,
    disabled_at: presentTime(subscription.disabledAt),
    last_disabled_at: presentTime(subscription.lastDisabledAt),
    created_at: formatTime(subscription.createdAt),
  };
}

export const SubscriptionTestAnswer = z
  .object({
    matched: z.boolean(),
    skipped: z.boolean(),
    reason: z.string().nullable(),
    position: SourcePosition.nullable(),
    steps: z.int(),
  })
  .register(ANSWERS, { id: "SubscriptionTest" });

export function presentSubscriptionTest(test: SubscriptionTest): z.infer<typeof SubscriptionTestAnswer> {
  return test;
}
