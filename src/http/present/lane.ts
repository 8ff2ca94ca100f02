import { z } from "zod";
import type { getLane } from "../../app/lane/read-lane.ts";
import { deliveryId } from "../../core/ids.ts";
import { DELIVERY_STATUSES } from "../../core/model.ts";
import { presentTime } from "./time.ts";
import { ERROR_CLASSES } from "../../core/outcome.ts";
import { ANSWERS } from "../openapi/registries.ts";
import { id, known, time } from "./fields.ts";

export const LaneAnswer = z
  .object({
    mode: z.enum(["unordered", "strict", "keyed"]),
    state: z.enum(["idle", "running", "waiting", "blocked", "paused", "disabled"]),
    quarantined_at: time.nullable(),
    depth: z.int(),
    heads: z.array(
      z
        .object({
          ordering_key: z.string().nullable(),
          delivery_id: id("dlv"),
          event_id: id("evt"),
          status: known(DELIVERY_STATUSES),
          attempt_count: z.int(),
          scheduled_at: time.nullable(),
          blocked_since: time.nullable(),
          next_attempt_at: time.nullable(),
          last_outcome: z.object({
            status_code: z.int().nullable(),
            error_class: known(ERROR_CLASSES).nullable(),
          }),
          depth: z.int(),
        })
        .register(ANSWERS, { id: "LaneHead" }),
    ),
  })
  .register(ANSWERS, { id: "Lane" });
type LaneAnswer = z.infer<typeof LaneAnswer>;

export function presentLane(lane: Awaited<ReturnType<typeof getLane>>): LaneAnswer {
  return {
    mode: lane.orderingMode,
    state: lane.state,
    quarantined_at: presentTime(lane.quarantinedAt),
    depth: lane.depth,
    heads: lane.heads.map((head) => ({
      ordering_key: head.orderingKey,
      delivery_id: deliveryId(head),
      event_id: head.eventId,
      status: head.status,
      attempt_count: head.attemptCount,
      scheduled_at: presentTime(head.scheduledAt),
      blocked_since: presentTime(head.blockedSince),
      next_attempt_at: head.status === "pending" ? presentTime(head.nextAttemptAt) : null,
      last_outcome: { status_code: head.lastStatusCode, error_class: head.lastErrorClass },
      depth: head.depth,
    })),
  };
}
