import { standingBlocks } from "./block.ts";
import { PAUSED_AT } from "./suspension.ts";

type Row = Record<string, any>;

const OPEN_IN_LANE = "terminal_at is null and lane_key is not null";

export function createLaneViewLedger(db: D1Database) {
  return {
    /**
     * A lane as an operator looks at it: how it is set, what stands first of each key (at most `maxHeads`, and blocked ones
     * rather than others; oldest first), and how much stands behind. Null when there is no such endpoint. delivery_lane.
     */
    async viewLane(tenantId: string, endpointId: string, maxHeads: number, now: number) {
      const [settings, blocks, heads, depth] = await db.batch<Row>([
        db
          .prepare(
            `select ordering_mode, ${PAUSED_AT} as paused_at, disabled_at, quarantined_at
             from endpoint ep cross join tenant t on t.id = ep.tenant_id
             where ep.tenant_id = ? and ep.id = ? and ep.deleted_at is null`,
          )
          .bind(tenantId, endpointId),
        db
          .prepare(
            `select h.*, b.blocked_at, (${depthOfKey("h")}) as depth from ${standingBlocks("?4")}
             where b.tenant_id = ?1 and b.endpoint_id = ?2 order by b.blocked_at limit ?3`,
          )
          .bind(tenantId, endpointId, maxHeads, now),
        db
          .prepare(
            `with recursive head (lane_key, n) as (
               select (select min(lane_key) from delivery where endpoint_id = ?2 and ${OPEN_IN_LANE}), 1
               union all
               select (select min(lane_key) from delivery where endpoint_id = ?2 and ${OPEN_IN_LANE}
                       and lane_key > head.lane_key), n + 1
               from head where head.lane_key is not null and n < ?3)
             select d.*, null as blocked_at, (${depthOfKey("d")}) as depth
             from (select lane_key from head where lane_key is not null) h
             cross join delivery d on d.endpoint_id = ?2 and d.lane_key = h.lane_key and d.terminal_at is null
               and d.lane_key is not null and d.lane_position = (
                 select min(x.lane_position) from delivery x where x.endpoint_id = ?2 and x.lane_key = h.lane_key
                   and x.terminal_at is null and x.lane_key is not null)
             where d.tenant_id = ?1 and not exists (
               select 1 from ${standingBlocks("?4")} where b.endpoint_id = ?2 and b.lane_key = d.lane_key)
             order by d.created_at, d.event_id`,
          )
          .bind(tenantId, endpointId, maxHeads, now),
        db
          .prepare(`select count(*) as n from delivery where endpoint_id = ?2 and ${OPEN_IN_LANE} and +tenant_id = ?1`)
          .bind(tenantId, endpointId),
      ]);
      const endpoint = settings!.results[0];
      if (!endpoint) return null;
      return {
        orderingMode: endpoint["ordering_mode"] as "unordered" | "strict" | "keyed",
        pausedAt: endpoint["paused_at"] as number | null,
        disabledAt: endpoint["disabled_at"] as number | null,
        quarantinedAt: endpoint["quarantined_at"] as number | null,
        depth: depth!.results[0]!["n"] as number,
        heads: [...blocks!.results, ...heads!.results]
          .slice(0, maxHeads)
          .toSorted((a, b) => a["created_at"] - b["created_at"] || (a["event_id"] < b["event_id"] ? -1 : 1))
          .map(toLaneHead),
      };
    },
  };
}

/** Open deliveries with the key of `head`. */
const depthOfKey = (head: string) => `select count(*) from delivery x where x.endpoint_id = ${head}.endpoint_id
  and x.lane_key = ${head}.lane_key and x.terminal_at is null and x.lane_key is not null`;

function toLaneHead(row: Row) {
  // One of its own holds a space, which an ordering key cannot.
  const isKey = row["lane_key"] !== "" && !(row["lane_key"] as string).includes(" ");
  return {
    orderingKey: isKey ? (row["lane_key"] as string) : null,
    eventId: row["event_id"] as string,
    endpointId: row["endpoint_id"] as string,
    replayNo: row["replay_no"] as number,
    status: row["status"] as string,
    attemptCount: row["attempt_count"] as number,
    scheduledAt: row["scheduled_at"] as number | null,
    blockedSince: row["blocked_at"] as number | null,
    nextAttemptAt: row["next_attempt_at"] as number | null,
    lastStatusCode: row["last_status_code"] as number | null,
    lastErrorClass: row["last_error_class"] as string | null,
    depth: row["depth"] as number,
  };
}
