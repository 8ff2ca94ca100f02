import { DELIVERY_STATUSES, type DeliveryStatus } from "./model.ts";
import type { ErrorClass, FinalOutcome } from "./outcome.ts";

/** What a list of deliveries is narrowed by, all at once. Times are Unix milliseconds, and both ends are left out. */
export interface DeliveryFilters {
  endpointId?: string | undefined;
  subscriptionId?: string | undefined;
  /** Id or name, also of one that is deleted. */
  source?: string | undefined;
  eventId?: string | undefined;
  eventType?: string | undefined;
  status?: DeliveryStatus | undefined;
  /** Those that have no replay. */
  isOpen?: boolean | undefined;
  /** Of the last closed attempt. */
  errorClass?: ErrorClass | undefined;
  statusCode?: number | undefined;
  finalOutcome?: FinalOutcome | undefined;
  /** Of any attempt. */
  workerId?: string | undefined;
  /** Where its event was accepted. */
  relayRegion?: string | undefined;
  /** Of the payload it carries. */
  schemaVersion?: number | undefined;
  createdAfter?: number | undefined;
  createdBefore?: number | undefined;
  occurredAfter?: number | undefined;
  occurredBefore?: number | undefined;
  terminalAfter?: number | undefined;
  terminalBefore?: number | undefined;
}

export function isOpenStatus(status: DeliveryStatus): boolean {
  return status === "pending" || status === "processing";
}

/**
 * The statuses that deliveries of these filters can have. A success has no error class, and a status of its own; what is open
 * has not ended. The fewer there are, the less has to be looked at.
 */
export function statusesOf(filters: DeliveryFilters): DeliveryStatus[] {
  const { status, errorClass, statusCode, finalOutcome, terminalAfter, terminalBefore } = filters;
  const isFailed = errorClass !== undefined || (statusCode !== undefined && (statusCode < 200 || statusCode > 299));
  const hasEnded = [finalOutcome, terminalAfter, terminalBefore].some((asked) => asked !== undefined);
  return DELIVERY_STATUSES.filter(
    (possible) =>
      (status === undefined || possible === status) &&
      !(isFailed && possible === "succeeded") &&
      !(hasEnded && isOpenStatus(possible)) &&
      (finalOutcome === undefined || (finalOutcome === "delivered") === (possible === "succeeded")),
  );
}
