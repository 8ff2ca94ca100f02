import { z } from "zod";
import type { Subscription } from "../../core/model.ts";
import { notFound } from "../app-error.ts";
import { Time } from "../field-schemas.ts";
import { parsePage, readPage, type Page } from "../list-input.ts";
import { requireReader, type Principal } from "../principal.ts";
import type { SubscriptionDeps } from "./deps.ts";

export const ListSubscriptionsInput = { endpoint_id: z.string().optional(), disabled_after: Time.optional() };

type ReadSubscriptionDeps = Pick<SubscriptionDeps, "subscriptions">;

export async function getSubscription(
  deps: ReadSubscriptionDeps,
  principal: Principal,
  id: string,
): Promise<Subscription> {
  requireReader(principal);
  const subscription = await deps.subscriptions.find(principal.tenantId, id);
  if (!subscription) throw notFound("subscription");
  return subscription;
}

export async function listSubscriptions(
  deps: ReadSubscriptionDeps,
  principal: Principal,
  query: unknown,
): Promise<Page<Subscription>> {
  requireReader(principal);
  const input = parsePage(query, ListSubscriptionsInput, "sub");
  const filters = { endpointId: input.endpoint_id ?? null, disabledAfter: input.disabled_after ?? null };
  return readPage(
    input,
    (request) => deps.subscriptions.page(principal.tenantId, { ...request, ...filters }),
    (subscription) => subscription,
  );
}
