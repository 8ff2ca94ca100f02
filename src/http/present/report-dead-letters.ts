import { z } from "zod";
import type { DeadLetterGroup } from "../../app/report/dead-letters.ts";
import { deliveryId } from "../../core/ids.ts";
import { FINAL_OUTCOMES } from "../../core/outcome.ts";
import { formatTime } from "../../core/timestamps.ts";
import { ANSWERS } from "../openapi/registries.ts";
import { id, known, time } from "./fields.ts";
import { reportOf } from "./report.ts";

const DeadLetterGroupAnswer = z
  .object({
    subscription_id: id("sub"),
    endpoint_id: id("ep"),
    final_outcome: known(FINAL_OUTCOMES),
    deliveries: z.int(),
    oldest_at: time,
    newest_at: time,
    example_delivery_id: id("dlv"),
  })
  .register(ANSWERS, { id: "DeadLetterGroup" });
type DeadLetterGroupAnswer = z.infer<typeof DeadLetterGroupAnswer>;

export const DeadLettersAnswer = reportOf("DeadLetters", DeadLetterGroupAnswer, { groups: z.int() });

export function presentDeadLetterGroup(group: DeadLetterGroup): DeadLetterGroupAnswer {
  return {
    subscription_id: group.subscriptionId,
    endpoint_id: group.endpointId,
    final_outcome: group.finalOutcome,
    deliveries: group.deliveries,
    oldest_at: formatTime(group.oldestAt),
    newest_at: formatTime(group.newestAt),
    example_delivery_id: deliveryId(group.example),
  };
}
