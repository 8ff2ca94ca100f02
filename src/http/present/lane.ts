import type { getLane } from "../../app/lane/read-lane.ts";
import { deliveryId } from "../../core/ids.ts";
import { presentTime } from "./time.ts";

export function presentLane(lane: Awaited<ReturnType<typeof getLane>>) {
  return {
    mode: lane.orderingMode,
    state: lane.state,
    depth: lane.depth,
    heads: lane.heads.map((head) => ({
      ordering_key: head.orderingKey,
      delivery_id: deliveryId(head),
      event_id: head.eventId,
      status: head.status,
      attempt_count: head.attemptCount,
      blocked_since: presentTime(head.blockedSince),
      next_attempt_at: head.status === "pending" ? presentTime(head.nextAttemptAt) : null,
      last_outcome: { status_code: head.lastStatusCode, error_class: head.lastErrorClass },
      depth: head.depth,
    })),
  };
}
