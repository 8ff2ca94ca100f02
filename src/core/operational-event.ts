import type { OperationalEventType } from "./event-type.ts";
import { deliveryId } from "./ids.ts";
import { formatTime } from "./timestamps.ts";

/** A transition as the ledger noted it, in the batch that made it. `id` is computed from the transition. */
export interface RaisedEvent {
  id: string;
  type: OperationalEventType;
  /** Milliseconds since 1970 UTC: when the transition was. */
  raisedAt: number;
  /** What the rows said, by column; times are milliseconds. */
  facts: Record<string, any>;
}

/**
 * What consumers get. Names and numbers only: no URL (many carry a token), no header, no payload, no answer's body. It is
 * computed from the note alone, so publishing it twice is publishing the same bytes twice.
 */
export function operationalPayload({ type, facts, raisedAt }: RaisedEvent): Record<string, unknown> {
  switch (type) {
    case "hooklane.delivery.dead_letter":
      return {
        delivery_id: deliveryId({
          eventId: facts["event_id"],
          endpointId: facts["endpoint_id"],
          replayNo: facts["replay_no"],
        }),
        event_id: facts["event_id"],
        event_type: facts["event_type"],
        endpoint_id: facts["endpoint_id"],
        subscription_id: facts["subscription_id"],
        final_outcome: facts["final_outcome"],
        attempt_count: facts["attempt_count"],
        last_status_code: facts["last_status_code"],
        last_error_class: facts["last_error_class"],
        dead_at: formatTime(raisedAt),
      };
    case "hooklane.endpoint.disabled":
      return { endpoint_id: facts["endpoint_id"], reason: facts["reason"], disabled_at: formatTime(raisedAt) };
    case "hooklane.endpoint.failing":
      return {
        endpoint_id: facts["endpoint_id"],
        failing_since: formatTime(facts["failing_since"]),
        last_status_code: facts["last_status_code"],
        last_error_class: facts["last_error_class"],
      };
  }
}

/**
 * How many relays the event came through whose delivery died: what tells of it has come through as many, so that relays which
 * tell each other of dead letters stop.
 */
export function hopsOf({ facts }: RaisedEvent): number {
  return facts["hop_count"] ?? 0;
}
