import { deliveryId } from "../../core/ids.ts";
import type { DeliveryCall } from "../deliver/delivery-call.ts";
import type { LoadedDelivery } from "../deliver/prepare.ts";
import type { AttemptReport } from "../deliver/report.ts";

/** Doorbells for what was attempted, and for what was claimed and not attempted; who has ended ignores one. */
export function callsAfter(ended: AttemptReport[], given: LoadedDelivery[]): DeliveryCall[] {
  const next = ended.map((report) => ({ ...report, attemptNumber: report.attemptNumber + 1 }));
  const same = given.map((delivery) => ({ ...delivery, attemptNumber: delivery.attemptCount + 1 }));
  return [...next, ...same].map(({ tenantId, attemptNumber, ...ref }) => ({
    tenantId,
    deliveryId: deliveryId(ref),
    attemptNumber,
  }));
}
