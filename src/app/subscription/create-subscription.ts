import { z } from "zod";
import { createId } from "../../core/ids.ts";
import type { EventType, Subscription } from "../../core/model.ts";
import { defaultPin, isVersionRetired } from "../../core/subscription-pin.ts";
import { RetryPolicyInput } from "../../core/retry-policy.ts";
import { invalidField, quotaExceeded } from "../app-error.ts";
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

export const CreateSubscriptionInput = z.strictObject({
  endpoint_id: z.string(),
  event_type_pattern: EventTypePattern,
  retry_policy: RetryPolicyInput.nullish(),
  schema_version: SchemaVersion.nullish(),
  filter: FilterSource.nullish(),
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
  const made: Subscription = {
    id: createId("sub", deps.randomBytes(10)),
    endpointId: input.endpoint_id,
    eventTypePattern: input.event_type_pattern,
    filter: input.filter ?? null,
    filterFailure: null,
    entitlementScope: input.entitlement_scope ?? null,
    schemaVersion: input.schema_version ?? null,
    retryPolicy: input.retry_policy ?? null,
    disabledAt: null,
    lastDisabledAt: null,
    createdAt: deps.now(),
  };
  await requireFilterRoom(deps, principal.tenantId, made);
  return untilFresh(async () => {
    const endpoint = await deps.endpoints.find(principal.tenantId, input.endpoint_id);
    if (!endpoint) throw invalidField("endpoint_id", "no such endpoint");
    const eventType = await findItsType(deps, principal.tenantId, made);
    const subscription = input.schema_version === undefined ? withDefaultPin(made, eventType) : made;
    if (isVersionRetired(eventType, subscription.schemaVersion)) throw retiredPin(subscription);
    const policies = subscriptionPolicies(endpoint, subscription.retryPolicy);
    const stored = await deps.subscriptions.insert(principal.tenantId, subscription, policies);
    if (stored === "full") throw quotaExceeded("subscriptions");
    return stored === "stored" ? subscription : null;
  });
}

function withDefaultPin(subscription: Subscription, eventType: EventType | null): Subscription {
  const { eventTypePattern } = subscription;
  const schemaVersion = defaultPin(eventTypePattern, eventType);
  if (schemaVersion === "no_live_version") {
    throw invalidField(
      "schema_version",
      `every registered version of ${eventTypePattern} is retired: say which is meant`,
    );
  }
  return { ...subscription, schemaVersion };
}
