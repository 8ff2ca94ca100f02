/** A doorbell: this delivery may be due for this attempt. It may be lost, doubled, late or early; the row decides. */
export interface DeliveryCall {
  tenantId: string;
  deliveryId: string;
  /** The attempt that would be made, from 1. */
  attemptNumber: number;
}
