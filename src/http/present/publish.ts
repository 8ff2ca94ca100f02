import { z } from "zod";
import { AppError } from "../../app/app-error.ts";
import type { Accepted } from "../../app/publish/accepted.ts";
import { deliveryId } from "../../core/ids.ts";
import { formatTime } from "../../core/timestamps.ts";
import { ProblemAnswer, toProblem } from "../problem.ts";
import { ANSWERS } from "../openapi/registries.ts";
import { presentSkipped, SkippedAnswer } from "./event.ts";
import { id, time } from "./fields.ts";

export const AcceptedAnswer = z
  .object({
    id: id("evt"),
    duplicate: z.boolean(),
    relayed_at: time,
    delivery_count: z.int(),
    deliveries: z.array(
      z
        .object({
          id: id("dlv"),
          endpoint_id: id("ep"),
          subscription_id: id("sub"),
          status: z.enum(["pending", "failed"]),
        })
        .register(ANSWERS, { id: "AcceptedDelivery" }),
    ),
    skipped_count: z.int(),
    skipped: z.array(SkippedAnswer),
  })
  .register(ANSWERS, { id: "Accepted" });
type AcceptedAnswer = z.infer<typeof AcceptedAnswer>;

const AcceptedResult = AcceptedAnswer.extend({ status: z.literal([202, 200]) }).register(ANSWERS, {
  id: "AcceptedResult",
});
const RefusedResult = z
  .object({ status: z.int().min(400).max(599), error: ProblemAnswer })
  .register(ANSWERS, { id: "RefusedResult" });
const BatchResult = z.union([AcceptedResult, RefusedResult]).register(ANSWERS, { id: "BatchResult" });
type BatchResult = z.infer<typeof BatchResult>;

export const BatchAnswer = z.object({ results: z.array(BatchResult) }).register(ANSWERS, { id: "Batch" });

export function presentAccepted(accepted: Accepted): AcceptedAnswer {
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
    skipped_count: accepted.skippedCount,
    skipped: accepted.skipped.map(presentSkipped),
  };
}

export function acceptedStatus({ duplicate }: Accepted): 200 | 202 {
  return duplicate ? 200 : 202;
}

/** One result of a batch: what one publish would have been answered, with its status beside it. */
export function presentBatchResult(result: Accepted | AppError, requestId: string): BatchResult {
  if (result instanceof AppError) {
    const problem = toProblem(result, requestId);
    return { status: problem.status, error: problem };
  }
  return { status: acceptedStatus(result), ...presentAccepted(result) };
}
