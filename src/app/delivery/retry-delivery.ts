import { deliveryId, type DeliveryRef } from "../../core/ids.ts";
import type { Delivery } from "../../core/model.ts";
import { AppError } from "../app-error.ts";
import type { DeliveryCall } from "../deliver/delivery-call.ts";
import { requireAdmin, type Principal } from "../principal.ts";
import { findDelivery, type ReadDeliveryDeps } from "./read-delivery.ts";

export interface RetryDeliveryDeps extends Pick<ReadDeliveryDeps, "findDelivery" | "now"> {
  makeDue(tenantId: string, ref: DeliveryRef, now: number): Promise<boolean>;
  ringLater(calls: DeliveryCall[], delayMs: number): void;
}

/** Makes a pending delivery due now: the same delivery, its next attempt. 409 when it is not pending, or held. */
export async function retryDelivery(deps: RetryDeliveryDeps, principal: Principal, id: string): Promise<Delivery> {
  requireAdmin(principal);
  const delivery = await findDelivery(deps, principal, id);
  if (!(await deps.makeDue(principal.tenantId, delivery, deps.now()))) {
    const now = await findDelivery(deps, principal, id);
    if (now.status === "processing") throw new AppError("not_pending", "An attempt of this delivery is under way.");
    if (now.status !== "pending") {
      throw new AppError("not_pending", `The delivery is ${now.status}. Replay it to send its event again.`);
    }
    throw new AppError("held", "The endpoint is paused or disabled, or the tenant suspended, so the delivery is held.");
  }
  const call = {
    tenantId: principal.tenantId,
    deliveryId: deliveryId(delivery),
    attemptNumber: delivery.attemptCount + 1,
  };
  deps.ringLater([call], 0);
  return findDelivery(deps, principal, id);
}
