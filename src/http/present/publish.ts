import { AppError } from "../../app/app-error.ts";
import type { Accepted } from "../../app/publish/publish-events.ts";
import { deliveryId } from "../../core/ids.ts";
import { formatTime } from "../../core/timestamps.ts";
import { toProblem } from "../problem.ts";

export function presentAccepted(accepted: Accepted) {
  return {
    id: accepted.id,
    duplicate: accepted.duplicate,
    relayed_at: formatTime(accepted.relayedAt),
    delivery_count: accepted.deliveryCount,
    deliveries: accepted.deliveries.map(({ endpointId, subscriptionId, status }) => ({
      id: deliveryId({ eventId: accepted.id, endpointId, replayNo: 0 }),
      endpoint_id: endpointId,
      subscription_id: subscriptionId,
      status,
    })),
  };
}

export function acceptedStatus({ duplicate }: Accepted): 200 | 202 {
  return duplicate ? 200 : 202;
}

/** One result of a batch: what one publish would have been answered, with its status beside it. */
export function presentBatchResult(result: Accepted | AppError, requestId: string) {
  if (result instanceof AppError) {
    const problem = toProblem(result, requestId);
    return { status: problem.status, error: problem };
  }
  return { status: acceptedStatus(result), ...presentAccepted(result) };
}
