import type { Endpoint, PageRequest, Subscription, SubscriptionPolicies } from "../../core/model.ts";
import { mergeRetryPolicy, type RetryPolicyInput } from "../../core/retry-policy.ts";
import { MAX_FILTER_CHARACTERS } from "../../core/quotas.ts";
import { quotaExceeded } from "../app-error.ts";
import type { Runtime } from "../runtime.ts";

export interface SubscriptionDeps extends Pick<Runtime, "now" | "randomBytes"> {
  endpoints: { find(tenantId: string, id: string): Promise<Endpoint | null> };
  subscriptions: {
    /** `stale` when the endpoint is not as `policies` says, `full` when the tenant has all it may have. */
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
     * False when subscription or endpoint are not as `from` and `policies` say. With `isFilterSet` the failure that was noted
     * is forgotten.
     */
    update(
      tenantId: string,
      from: Subscription,
      to: Pick<Subscription, "eventTypePattern" | "filter" | "retryPolicy">,
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
