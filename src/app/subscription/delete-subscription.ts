import { notFound } from "../app-error.ts";
import { requireAdmin, type Principal } from "../principal.ts";
import type { SubscriptionDeps } from "./deps.ts";

/** It matches nothing from now on; deliveries that it made go on. */
export async function deleteSubscription(
  deps: Pick<SubscriptionDeps, "subscriptions" | "now">,
  principal: Principal,
  id: string,
): Promise<void> {
  requireAdmin(principal);
  if (!(await deps.subscriptions.delete(principal.tenantId, id, deps.now()))) throw notFound("subscription");
}
