import { deliveryId, type DeliveryRef } from "../../core/ids.ts";
import type { DeliveryCall } from "../deliver/delivery-call.ts";
import type { Runtime } from "../runtime.ts";

export interface ReleaseHeldDeps extends Pick<Runtime, "now"> {
  /** Moves a bounded number of held deliveries back; an empty answer says that none is left. */
  releaseHeldPart(
    tenantId: string,
    endpointId: string,
    now: number,
  ): Promise<(DeliveryRef & { attemptCount: number })[]>;
  ringLater(calls: DeliveryCall[], delayMs: number): void;
}

/** Makes everything due that was held for an endpoint, oldest first, part by part. Can be done again where it stopped. */
export async function releaseHeld(deps: ReleaseHeldDeps, tenantId: string, endpointId: string): Promise<void> {
  for (;;) {
    const released = await deps.releaseHeldPart(tenantId, endpointId, deps.now());
    if (released.length === 0) return;
    const calls = released.map(({ attemptCount, ...ref }) => ({
      tenantId,
      deliveryId: deliveryId(ref),
      attemptNumber: attemptCount + 1,
    }));
    deps.ringLater(calls, 0);
  }
}
