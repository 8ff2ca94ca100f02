import { parseDeliveryId, type DeliveryRef } from "../../core/ids.ts";
import type { Attempt, Delivery } from "../../core/model.ts";
import { notFound } from "../app-error.ts";
import { requireReader, type Principal } from "../principal.ts";
import type { Runtime } from "../runtime.ts";

export interface ReadDeliveryDeps extends Pick<Runtime, "now"> {
  findDelivery(tenantId: string, ref: DeliveryRef, now: number): Promise<Delivery | null>;
  findDeliveryWithAttempts(
    tenantId: string,
    ref: DeliveryRef,
    now: number,
  ): Promise<{ delivery: Delivery; attempts: Attempt[] } | null>;
}

export async function getDelivery(
  deps: ReadDeliveryDeps,
  principal: Principal,
  id: string,
): Promise<{ delivery: Delivery; attempts: Attempt[] }> {
  requireReader(principal);
  const ref = parseDeliveryId(id);
  const found = ref.ok ? await deps.findDeliveryWithAttempts(principal.tenantId, ref.value, deps.now()) : null;
  if (!found) throw notFound("delivery");
  return found;
}

/** The delivery behind an id; 404 for one of nothing, of another tenant, or expired. */
export async function findDelivery(
  deps: Pick<ReadDeliveryDeps, "findDelivery" | "now">,
  principal: Principal,
  id: string,
): Promise<Delivery> {
  const ref = parseDeliveryId(id);
  const delivery = ref.ok ? await deps.findDelivery(principal.tenantId, ref.value, deps.now()) : null;
  if (!delivery) throw notFound("delivery");
  return delivery;
}
