import { formatStoredHeaders } from "../../core/endpoint-headers.ts";
import type { Endpoint } from "../../core/model.ts";
import { owedToEndpoint } from "./fan-out.ts";
import { MAY_HAVE_AGE } from "./block.ts";
import { LANE_KEY_ANEW } from "./lane-key.ts";
import { movedTo } from "./lane-position.ts";
import { IS_TEST_SEND } from "./test-send.ts";

type Routing = Pick<
  Endpoint,
  | "orderingMode"
  | "concurrencyCap"
  | "rateLimitPerSecond"
  | "maxHeadHoldSeconds"
  | "onExhausted"
  | "timeoutMs"
  | "route"
  | "url"
  | "name"
  | "payloadFormat"
  | "headers"
  | "sourceSignatures"
  | "disableAfterFailingSeconds"
  | "quarantinedAt"
>;

/** Deliveries whose doorbells ring at once after a move to queues; the watchdog rings for the rest. */
const MAX_RUNG = 5_000;

export function createRerouteLedger(db: D1Database) {
  return {
    /**
     * Changes how an endpoint is routed and, when `moves`, re-keys its open deliveries in the order of their acceptance, in
     * one transaction: a publish commits before it or after it, and no claim sees the half of it. Deliveries in flight keep
     * token and lease, and stand first, so that no other starts beside them; one whose attempt fails goes to its place among
     * the others. Null when the endpoint is not as `revision` says.
     *
     * Queue-routed work is found by a walk over all due work of the shard (delivery_due): the price of a rare change. The plus
     * keeps the planner from walking the tenant's history instead.
     */
    async changeRouting(
      tenantId: string,
      endpointId: string,
      revision: number,
      routing: Routing,
      moves: boolean,
      now: number,
    ) {
      const results = await db.batch<Record<string, any>>([
        // First: it stands on the revision that the change below ends, so that one who comes too late moves nothing.
        ...(moves ? moveOpen(db, tenantId, endpointId, revision, routing, now) : []),
        db.prepare("update tenant set revision = revision + 1 where id = ?").bind(tenantId),
        db
          .prepare(
            `update endpoint set ordering_mode = ?4, concurrency_cap = ?5, rate_limit_per_second = ?6,
               max_head_hold_seconds = ?7, on_exhausted = ?8, timeout_ms = ?9, route = ?10, url = ?11, name = ?12,
               payload_format = ?13, headers = ?14, disable_after_failing_seconds = ?15,
               failing_since = iif(url = ?11, failing_since, null),
               failure_noted_at = iif(url = ?11, failure_noted_at, null), quarantined_at = ?16,
               source_signatures = ?17,
               revision = revision + 1
             where tenant_id = ?1 and id = ?2 and revision = ?3 and deleted_at is null
             returning id`,
          )
          .bind(
            tenantId,
            endpointId,
            revision,
            routing.orderingMode,
            routing.concurrencyCap,
            routing.rateLimitPerSecond,
            routing.maxHeadHoldSeconds,
            routing.onExhausted,
            routing.timeoutMs,
            routing.route,
            routing.url,
            routing.name,
            routing.payloadFormat,
            formatStoredHeaders(routing.headers),
            routing.disableAfterFailingSeconds,
            routing.quarantinedAt,
            routing.sourceSignatures ? 1 : 0,
          ),
      ]);
      if (results.at(-1)!.results.length === 0) return null;
      if (!moves || routing.route === "lane") return [];
      return results[1]!.results.map((row) => ({
        eventId: row["event_id"] as string,
        endpointId,
        replayNo: row["replay_no"] as number,
        attemptCount: row["attempt_count"] as number,
      }));
    },

    /**
     * How many pending deliveries of an endpoint queues have, or its lane; `limit` where it is more. delivery_due, which holds
     * its id, or delivery_lane.
     */
    async countToMove(tenantId: string, endpointId: string, from: "queue" | "lane", limit: number): Promise<number> {
      const toMove = `select 1 from delivery where lane_key is ${from === "lane" ? "not" : ""} null and terminal_at is null
        and status = 'pending' and endpoint_id = ?2 and +tenant_id = ?1 limit ?3`;
      const statement = db.prepare(`select count(*) as n from (${toMove})`).bind(tenantId, endpointId, limit);
      return (await statement.first<number>("n"))!;
    },
  };
}

function moveOpen(
  db: D1Database,
  tenantId: string,
  endpointId: string,
  revision: number,
  { route, orderingMode }: Routing,
  now: number,
): D1PreparedStatement[] {
  const isFresh = `exists (select 1 from endpoint e
    where e.tenant_id = ?1 and e.id = ?2 and e.revision = ?3 and e.deleted_at is null)`;
  // What it is owed and has no row yet moves with the rest. It is so even if the change comes too late.
  const owed = owedToEndpoint(db, tenantId, endpointId);
  // As where a block is lifted by itself: see `redateBehind`.
  const redate = db
    .prepare(
      `update delivery set scheduled_at = ?4
       from (select distinct endpoint_id, lane_key from lane_block where endpoint_id = ?2 and tenant_id = ?1) b
       where ${MAY_HAVE_AGE} and ${isFresh}`,
    )
    .bind(tenantId, endpointId, revision, now);
  // Whoever leaves a mode leaves its blocks behind.
  const unblock = db
    .prepare(`delete from lane_block where endpoint_id = ?2 and tenant_id = ?1 and ${isFresh}`)
    .bind(tenantId, endpointId, revision);
  if (route === "queue") {
    const rung = db
      .prepare(
        `select event_id, replay_no, attempt_count from delivery
         where endpoint_id = ?2 and terminal_at is null and lane_key is not null and status = 'pending'
           and +tenant_id = ?1 and ${isFresh}
         order by lane_key, lane_position limit ${MAX_RUNG}`,
      )
      .bind(tenantId, endpointId, revision);
    const toQueue = db
      .prepare(
        `update delivery set lane_key = null, lane_position = null, hold_until = null,
           scheduled_at = coalesce(scheduled_at, ?4)
         where endpoint_id = ?2 and terminal_at is null and lane_key is not null and +tenant_id = ?1 and ${isFresh}`,
      )
      .bind(tenantId, endpointId, revision, now);
    return [owed, rung, redate, unblock, toQueue];
  }
  const open = (where: string) =>
    `select tenant_id, event_id, endpoint_id, replay_no, status, attempt_count, created_at from delivery
     where ${where} and terminal_at is null and endpoint_id = ?2 and +tenant_id = ?1`;
  const toLane = db
    .prepare(
      `update delivery set lane_key = m.key, lane_position = m.position, hold_until = null,
         -- Waiting in a lane uses up nobody's age.
         scheduled_at = iif(delivery.attempt_count = 0, null, delivery.scheduled_at)
       from (
         select d.tenant_id, d.event_id, d.endpoint_id, d.replay_no, ${LANE_KEY_ANEW} as key,
           ${movedTo(
             `row_number() over (partition by ${LANE_KEY_ANEW} order by d.created_at, d.event_id, d.replay_no)
               - count(*) over (partition by ${LANE_KEY_ANEW})`,
             "d.status = 'processing'",
           )} as position
         from (${open("lane_key is not null")}
               union all ${open("lane_key is null and status = 'pending'")}
               union all ${open("lane_key is null and status = 'processing'")}) d
         cross join event e on e.tenant_id = d.tenant_id and e.id = d.event_id
         cross join (select ?4 as route, ?5 as ordering_mode) ep
         -- A test send is under way past every lane.
         where ${isFresh} and not ${IS_TEST_SEND}) m
       where delivery.tenant_id = m.tenant_id and delivery.event_id = m.event_id
         and delivery.endpoint_id = m.endpoint_id and delivery.replay_no = m.replay_no`,
    )
    .bind(tenantId, endpointId, revision, route, orderingMode);
  return [owed, redate, unblock, toLane];
}
