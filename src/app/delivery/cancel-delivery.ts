import type { DeliveryRef } from "../../core/ids.ts";
import type { Delivery, Endpoint } from "../../core/model.ts";
import { AppError } from "../app-error.ts";
import { requireAdmin, type Principal } from "../principal.ts";
import { findDelivery, type ReadDeliveryDeps } from "./read-delivery.ts";

export interface CancelDeliveryDeps extends Pick<ReadDeliveryDeps, "findDelivery" | "now"> {
  cancelDelivery(tenantId: string, ref: DeliveryRef, now: number): Promise<boolean>;
  endpoints: { find(tenantId: string, id: string): Promise<Endpoint | null> };
  wakeLane(lane: { tenantId: string; endpointId: string; generation: number }): void;
}

/** Ends a pending delivery as `cancelled`. 409 while an attempt is in flight, or when it has ended already. */
export async function cancelDelivery(deps: CancelDeliveryDeps, principal: Principal, id: string): Promise<Delivery> {
  requireAdmin(principal);
  const delivery = await findDelivery(deps, principal, id);
  const isCancelled = await deps.cancelDelivery(principal.tenantId, delivery, deps.now());
  const now = await findDelivery(deps, principal, id);
  if (isCancelled) {
    await letLaneGoOn(deps, principal.tenantId, delivery.endpointId);
    return now;
  }
  if (now.status === "processing") throw new AppError("in_flight", "An attempt of this delivery is under way.");
  throw new AppError("not_pending", `The delivery is ${now.status} already.`);
}

/** It may have been the head that others wait for. */
async function letLaneGoOn(deps: CancelDeliveryDeps, tenantId: string, endpointId: string): Promise<void> {
  const endpoint = await deps.endpoints.find(tenantId, endpointId);
  if (endpoint?.route === "lane") deps.wakeLane({ tenantId, endpointId, generation: endpoint.laneGeneration });
}
