import { z } from "zod";
import { ENTITLEMENT_SCOPE } from "../../core/grammar.ts";
import type {
  Endpoint,
  EventType,
  PageRequest,
  Subscription,
  SubscriptionChanges,
  SubscriptionPolicies,
} from "../../core/model.ts";
import { mergeRetryPolicy, type RetryPolicyInput } from "../../core/retry-policy.ts";
import { MAX_FILTER_CHARACTERS } from "../../core/quotas.ts";
import { invalidField, quotaExceeded, type AppError } from "../app-error.ts";
import type { Runtime } from "../runtime.ts";

export interface SubscriptionDeps extends Pick<Runtime, "now" | "randomBytes"> {
  endpoints: { find(tenantId: string, id: string): Promise<Endpoint | null> };
  eventTypes: { find(tenantId: string, name: string): Promise<EventType | null> };
  subscriptions: {
    /**
     * `stale` when the endpoint is not as `policies` says, or the version asked for is retired; `full` when the tenant has all
     * it may have.
     */
    insert(
      tenantId: string,
      subscription: Subscription,
      policies: SubscriptionPolicies,
    ): Promise<"stored" | "stale" | "full">;
    find(tenantId: string, id: string): Promise<Subscription | null>;
    page(
      tenantId: string,
      request: PageRequest & { endpointId: string | null; disabledAfter: number | null },
    ): Promise<Subscription[]>;
    /**
     * False when subscription or endpoint are not as `from` and `policies` say, or the version newly asked for is retired.
     * With `isFilterSet` the failure that was noted is forgotten.
     */
    update(
      tenantId: string,
      from: Subscription,
      to: SubscriptionChanges,
      policies: SubscriptionPolicies,
      isFilterSet: boolean,
    ): Promise<boolean>;
    /** Characters of the tenant's filters, but for one subscription's. */
    countFilterCharacters(tenantId: string, exceptId: string): Promise<number>;
    /** Null when there is no such subscription; one that is disabled already stays as it is. */
    disable(tenantId: string, id: string, now: number): Promise<Subscription | null>;
    enable(tenantId: string, id: string): Promise<Subscription | null>;
    delete(tenantId: string, id: string, now: number): Promise<boolean>;
  };
}

/** Words that types may require, as OAuth writes scopes. */
export const EntitlementScope = z
  .string()
  .regex(
    ENTITLEMENT_SCOPE,
    "must be words of 1 to 128 visible ASCII characters, without quotes and backslashes, with one space between them, " +
      "at most 1024 characters in all",
  );

/** The type that a subscription is to, where it is to one that is registered. */
export async function findItsType(
  { eventTypes }: Pick<SubscriptionDeps, "eventTypes">,
  tenantId: string,
  { eventTypePattern }: Pick<Subscription, "eventTypePattern">,
): Promise<EventType | null> {
  return eventTypePattern.includes("*") ? null : eventTypes.find(tenantId, eventTypePattern);
}

export function retiredPin({ eventTypePattern, schemaVersion }: Subscription): AppError {
  return invalidField("schema_version", `version ${schemaVersion} of ${eventTypePattern} is retired`);
}

/** The policy a subscription's deliveries get, with the endpoint's, which it was computed from. */
export function subscriptionPolicies(endpoint: Endpoint, override: RetryPolicyInput | null): SubscriptionPolicies {
  return { endpoint: endpoint.retryPolicy, effective: override && mergeRetryPolicy(endpoint.retryPolicy, override) };
}

/** Throws `quota_exceeded`. Two changes at once may go over by one filter: it bounds memory, and is nobody's promise. */
export async function requireFilterRoom(
  deps: Pick<SubscriptionDeps, "subscriptions">,
  tenantId: string,
  { id, filter }: Pick<Subscription, "id" | "filter">,
): Promise<void> {
  if (filter === null) return;
  const others = await deps.subscriptions.countFilterCharacters(tenantId, id);
  if (others + filter.length > MAX_FILTER_CHARACTERS) throw quotaExceeded("characters of filters");
}
