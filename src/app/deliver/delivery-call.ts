import { deliveryId, type DeliveryRef } from "../../core/ids.ts";

/** A doorbell: this delivery may be due for this attempt. It may be lost, doubled, late or early; the row decides. */
export interface DeliveryCall {
  tenantId: string;
  deliveryId: string;
  /** The attempt that would be made, from 1. */
  attemptNumber: number;
}

/** What is due within this rings by a delayed message; the watchdog rings for what is due later, when it is. */
export const MAX_RING_DELAY_MS = 60_000;

export function callFor(ref: DeliveryRef & { tenantId: string }, attemptNumber: number): DeliveryCall {
  return { tenantId: ref.tenantId, deliveryId: deliveryId(ref), attemptNumber };
}
