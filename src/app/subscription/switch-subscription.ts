import type { Subscription } from "../../core/model.ts";
import { notFound } from "../app-error.ts";
import { requireAdmin, type Principal } from "../principal.ts";
import type { SubscriptionDeps } from "./deps.ts";

type SwitchSubscriptionDeps = Pick<SubscriptionDeps, "subscriptions" | "now">;

/**
 * It matches nothing from the moment this has answered; deliveries that it made go on. Doing it again changes nothing.
 */
export async function disableSubscription(
  deps: SwitchSubscriptionDeps,
  principal: Principal,
  id: string,
): Promise<Subscription> {
  requireAdmin(principal);
  const disabled = await deps.subscriptions.disable(principal.tenantId, id, deps.now());
  if (!disabled) throw notFound("subscription");
  return disabled;
}

/** It matches what is accepted from now on; what was accepted meanwhile it has missed. */
export async function enableSubscription(
  deps: SwitchSubscriptionDeps,
  principal: Principal,
  id: string,
): Promise<Subscription> {
  requireAdmin(principal);
  const enabled = await deps.subscriptions.enable(principal.tenantId, id);
  if (!enabled) throw notFound("subscription");
  return enabled;
}
