import { z } from "zod";
import type { Subscription } from "../../core/model.ts";
import { RetryPolicyInput } from "../../core/retry-policy.ts";
import { notFound } from "../app-error.ts";
import { EventTypePattern } from "../field-schemas.ts";
import { notSupported, parseInput } from "../parse-input.ts";
import { requireAdmin, type Principal } from "../principal.ts";
import { untilFresh } from "../until-fresh.ts";
import { EntitlementScope, subscriptionPolicies, type SubscriptionDeps } from "./deps.ts";

export const UpdateSubscriptionInput = z.strictObject({
  event_type_pattern: EventTypePattern.optional(),
  retry_policy: RetryPolicyInput.nullish(),
  schema_version: notSupported(),
  filter: notSupported(),
  entitlement_scope: EntitlementScope.nullish(),
});
export type UpdateSubscriptionInput = z.infer<typeof UpdateSubscriptionInput>;

/** An override that is given goes over the one there is; null takes it away. */
export async function updateSubscription(
  deps: SubscriptionDeps,
  principal: Principal,
  id: string,
  body: unknown,
): Promise<Subscription> {
  requireAdmin(principal);
  const input = parseInput(UpdateSubscriptionInput, body);
  const { tenantId } = principal;
  return untilFresh(async () => {
    const present = await deps.subscriptions.find(tenantId, id);
    const endpoint = present && (await deps.endpoints.find(tenantId, present.endpointId));
    if (!endpoint) throw notFound("subscription");
    const changed: Subscription = {
      ...present,
      eventTypePattern: input.event_type_pattern ?? present.eventTypePattern,
      entitlementScope: input.entitlement_scope === undefined ? present.entitlementScope : input.entitlement_scope,
      retryPolicy: changeOverride(present.retryPolicy, input.retry_policy),
    };
    const policies = subscriptionPolicies(endpoint, changed.retryPolicy);
    return (await deps.subscriptions.update(tenantId, present, changed, policies)) ? changed : null;
  });
}

function changeOverride(present: RetryPolicyInput | null, given: RetryPolicyInput | null | undefined) {
  if (given === undefined) return present;
  return given && { ...present, ...given };
}
