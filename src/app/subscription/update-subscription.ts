import { z } from "zod";
import type { Subscription } from "../../core/model.ts";
import { isVersionRetired } from "../../core/subscription-pin.ts";
import { RetryPolicyInput } from "../../core/retry-policy.ts";
import { notFound } from "../app-error.ts";
import { EventTypePattern, FilterSource, SchemaVersion } from "../field-schemas.ts";
import { parseInput } from "../parse-input.ts";
import { requireAdmin, type Principal } from "../principal.ts";
import { untilFresh } from "../until-fresh.ts";
import {
  EntitlementScope,
  findItsType,
  requireFilterRoom,
  retiredPin,
  subscriptionPolicies,
  type SubscriptionDeps,
} from "./deps.ts";

export const UpdateSubscriptionInput = z.strictObject({
  event_type_pattern: EventTypePattern.optional(),
  retry_policy: RetryPolicyInput.nullish(),
  schema_version: SchemaVersion.nullish(),
  filter: FilterSource.nullish(),
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
  // Also when it is the same one again: whoever sets it says that the failure that was noted is seen to.
  const isFilterSet = input.filter !== undefined;
  return untilFresh(async () => {
    const present = await deps.subscriptions.find(tenantId, id);
    const endpoint = present && (await deps.endpoints.find(tenantId, present.endpointId));
    if (!endpoint) throw notFound("subscription");
    const changed: Subscription = {
      ...present,
      eventTypePattern: input.event_type_pattern ?? present.eventTypePattern,
      ...(isFilterSet && { filter: input.filter!, filterFailure: null }),
      entitlementScope: input.entitlement_scope === undefined ? present.entitlementScope : input.entitlement_scope,
      schemaVersion: input.schema_version === undefined ? present.schemaVersion : input.schema_version,
      retryPolicy: changeOverride(present.retryPolicy, input.retry_policy),
    };
    if (isFilterSet) await requireFilterRoom(deps, tenantId, changed);
    const isAnew =
      changed.eventTypePattern !== present.eventTypePattern || changed.schemaVersion !== present.schemaVersion;
    if (isAnew && isVersionRetired(await findItsType(deps, tenantId, changed), changed.schemaVersion)) {
      throw retiredPin(changed);
    }
    const policies = subscriptionPolicies(endpoint, changed.retryPolicy);
    return (await deps.subscriptions.update(tenantId, present, changed, policies, isFilterSet)) ? changed : null;
  });
}

function changeOverride(present: RetryPolicyInput | null, given: RetryPolicyInput | null | undefined) {
  if (given === undefined) return present;
  return given && { ...present, ...given };
}
