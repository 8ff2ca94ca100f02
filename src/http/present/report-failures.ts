import { z } from "zod";
import type { FailureGroup } from "../../app/report/failures.ts";
import { deliveryId } from "../../core/ids.ts";
import { ERROR_CLASSES, FINAL_OUTCOMES } from "../../core/outcome.ts";
import { formatTime } from "../../core/timestamps.ts";
import { ANSWERS } from "../openapi/registries.ts";
import { id, known, time } from "./fields.ts";
import { reportOf } from "./report.ts";

const FailureGroupAnswer = z
  .object({
    subscription_id: id("sub"),
    endpoint_id: id("ep"),
    error_class: known(ERROR_CLASSES).nullable(),
    final_outcome: known(FINAL_OUTCOMES).nullable(),
    deliveries: z.int(),
    attempts: z.int(),
    ended: z.int(),
    first_at: time,
    last_at: time,
    example_delivery_id: id("dlv"),
  })
  .register(ANSWERS, { id: "FailureGroup" });
type FailureGroupAnswer = z.infer<typeof FailureGroupAnswer>;

export const FailuresAnswer = reportOf("Failures", FailureGroupAnswer, { groups: z.int() });

export function presentFailureGroup(group: FailureGroup): FailureGroupAnswer {
  return {
    subscription_id: group.subscriptionId,
    endpoint_id: group.endpointId,
    error_class: group.errorClass,
    final_outcome: group.finalOutcome,
    deliveries: group.deliveries,
    attempts: group.attempts,
    ended: group.ended,
    first_at: formatTime(group.firstAt),
    last_at: formatTime(group.lastAt),
    example_delivery_id: deliveryId(group.example),
  };
}
