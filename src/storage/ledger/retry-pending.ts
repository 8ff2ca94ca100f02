import type { DeliveryRef } from "../../core/ids.ts";

type Row = Record<string, any>;

/** Where a walk over what waits goes on: by queues the time of the next attempt, and in a lane the key of its row. */
export type PendingKey =
  | { nextAttemptAt: number; tenantId: string; eventId: string; endpointId: string; replayNo: number }
  | { laneKey: string; lanePosition: number };

export interface RetriedPart {
  /** Whether anything may be retried at this endpoint now. */
  mayRetry: boolean;
  retried: (DeliveryRef & { attemptCount: number })[];
  /** Null at the end. */
  next: PendingKey | null;
}

/** Rows that one step looks at. */
const LOOKED_AT = 2_000;
const KEY = "tenant_id, event_id, endpoint_id, replay_no";

/** Of endpoint ?2 of tenant ?1: nothing holds it. Primary keys. */
const MAY_RETRY = `exists (select 1 from endpoint e cross join tenant t on t.id = e.tenant_id and t.status = 'active'
  where e.tenant_id = ?1 and e.id = ?2 and e.disabled_at is null and e.paused_at is null and e.deleted_at is null)`;

/** What waits for a retry in the future, of all endpoints of the shard: nothing has them by endpoint. delivery_due. */
const OF_QUEUES = `select ${KEY}, next_attempt_at, null as lane_key, null as lane_position from delivery
  where status = 'pending' and terminal_at is null and lane_key is null and next_attempt_at > ?3
    and next_attempt_at >= ?4 and (next_attempt_at, ${KEY}) > (?4, ?5, ?6, ?7, ?8)
  order by next_attempt_at, ${KEY} limit ${LOOKED_AT}`;

/** All that is open in the endpoint's lane. delivery_lane. */
const OF_LANE = `select ${KEY}, next_attempt_at, lane_key, lane_position from delivery
  where endpoint_id = ?2 and terminal_at is null and lane_key is not null
    and lane_key >= ?4 and (lane_key, lane_position) > (?4, ?5)
  order by lane_key, lane_position limit ${LOOKED_AT}`;

export function createRetryPendingLedger(db: D1Database) {
  return {
    /**
     * Makes those due at `now` that wait for a retry at an endpoint, among the next LOOKED_AT rows behind `after`. A claim
     * decides as ever whether and when each is attempted. Two rows each by queues, one in a lane.
     */
    async retryPendingPart(
      tenantId: string,
      endpointId: string,
      isLane: boolean,
      after: PendingKey | null,
      now: number,
    ): Promise<RetriedPart> {
      const walk = isLane ? OF_LANE : OF_QUEUES;
      const parameters = [tenantId, endpointId, now, ...(isLane ? laneKeyOf(after) : queueKeyOf(after))];
      const [last, retried, may] = await db.batch<Row>([
        // Before anything of it moves.
        db
          .prepare(
            `select * from (${walk}) where ?1 is not null and ?2 is not null and ?3 is not null limit 1 offset ${LOOKED_AT - 1}`,
          )
          .bind(...parameters),
        db
          .prepare(
            `update delivery set next_attempt_at = ?3
             where (${KEY}) in (
               select ${KEY} from (${walk}) w where w.tenant_id = ?1 and w.endpoint_id = ?2)
               and status = 'pending' and hold_until is null and next_attempt_at > ?3 and ${MAY_RETRY}
             returning event_id, endpoint_id, replay_no, attempt_count`,
          )
          .bind(...parameters),
        db.prepare(`select ${MAY_RETRY} as may`).bind(tenantId, endpointId),
      ]);
      const row = last!.results[0];
      return {
        mayRetry: may!.results[0]!["may"] === 1,
        retried: retried!.results.map((one) => ({
          eventId: one["event_id"],
          endpointId: one["endpoint_id"],
          replayNo: one["replay_no"],
          attemptCount: one["attempt_count"],
        })),
        next: row ? toKey(row) : null,
      };
    },
  };
}

function queueKeyOf(after: PendingKey | null): (string | number)[] {
  if (after === null || !("nextAttemptAt" in after)) return [0, "", "", "", 0];
  return [after.nextAttemptAt, after.tenantId, after.eventId, after.endpointId, after.replayNo];
}

function laneKeyOf(after: PendingKey | null): (string | number)[] {
  // Positions may be negative; no key is before the empty one.
  if (after === null || !("laneKey" in after)) return ["", -(2 ** 52)];
  return [after.laneKey, after.lanePosition];
}

function toKey(row: Row): PendingKey {
  if (row["lane_key"] !== null) return { laneKey: row["lane_key"], lanePosition: row["lane_position"] };
  return {
    nextAttemptAt: row["next_attempt_at"],
    tenantId: row["tenant_id"],
    eventId: row["event_id"],
    endpointId: row["endpoint_id"],
    replayNo: row["replay_no"],
  };
}
