import { z } from "zod";
import { createId } from "../../core/ids.ts";
import type { Subscription } from "../../core/model.ts";
import { RetryPolicyInput } from "../../core/retry-policy.ts";
import { invalidField, quotaExceeded } from "../app-error.ts";
import { EventTypePattern } from "../field-schemas.ts";
import { notSupported, parseInput } from "../parse-input.ts";
import { requireAdmin, type Principal } from "../principal.ts";
import { untilFresh } from "../until-fresh.ts";
import { EntitlementScope, subscriptionPolicies, type SubscriptionDeps } from "./deps.ts";

export const CreateSubscriptionInput = z.strictObject({
  endpoint_id: z.string(),
  event_type_pattern: EventTypePattern,
  retry_policy: RetryPolicyInput.nullish(),
  schema_version: notSupported(),
  filter: notSupported(),
  entitlement_scope: EntitlementScope.nullish(),
});
export type CreateSubscriptionInput = z.infer<typeof CreateSubscriptionInput>;

export async function createSubscription(
  deps: SubscriptionDeps,
  principal: Principal,
  body: unknown,
): Promise<Subscription> {
  requireAdmin(principal);
  const input = parseInput(CreateSubscriptionInput, body);
  const subscription: Subscription = {
    id: createId("sub", deps.randomBytes(10)),
    endpointId: input.endpoint_id,
    eventTypePattern: input.event_type_pattern,
    entitlementScope: input.entitlement_scope ?? null,
    retryPolicy: input.retry_policy ?? null,
    disabledAt: null,
    lastDisabledAt: null,
    createdAt: deps.now(),
  };
  return untilFresh(async () => {
    const endpoint = await deps.endpoints.find(principal.tenantId, input.endpoint_id);
    if (!endpoint) throw invalidField("endpoint_id", "no such endpoint");
    const policies = subscriptionPolicies(endpoint, subscription.retryPolicy);
    const stored = await deps.subscriptions.insert(principal.tenantId, subscription, policies);
    if (stored === "full") throw quotaExceeded("subscriptions");
    return stored === "stored" ? subscription : null;
  });
}
