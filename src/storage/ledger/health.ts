import type { HealthAttempt, HealthEndpoint } from "../../core/health.ts";
import { testSubscriptionId } from "../../core/test-event.ts";

type Row = Record<string, any>;

/** Subscriptions whose deliveries are looked at: the newest, and those deleted last. */
const MAX_LIVING = 16;
const MAX_DELETED = 4;
/** Deliveries of each, where what is waiting ends, and besides at each of these ages. */
const AT_THE_EDGE = 100;
const AT_AN_AGE = 8;
const AGES_MS = [0, 1, 10, 60, 360, 1_440, 4_320, 7_200].map((minutes) => minutes * 60_000);
const MAX_HEADS = 16;
const MAX_DELIVERIES = 100;
const ATTEMPTS_EACH = 10;
const MAX_ATTEMPTS = 100;

const IN_LANE = "d.endpoint_id = ?2 and d.terminal_at is null and d.lane_key is not null";
const SAMPLED = "d.event_id, d.replay_no, d.attempt_count, d.last_attempt_at, d.expires_at, d.subscription_id";

/** Whether an attempt was closed of the newest delivery of a subscription by some moment; also where there is none. */
const isTriedAt = (subscription: string, moment: string) => `coalesce((
  select d.last_attempt_at is not null and (d.status <> 'processing' or d.attempt_count > 1) from delivery d
  where d.subscription_id = ${subscription} and d.created_at <= ${moment} and +d.tenant_id = ?1
  order by d.created_at desc limit 1), 1)`;

/** Deliveries of one subscription from a moment back, as JSON: a join would not stop at a limit for each of them. */
const newestBefore = (subscription: string, before: string, limit: number) => `(
  select json_group_array(json_array(d.event_id, d.replay_no, d.attempt_count, d.last_attempt_at)) from (
    select ${SAMPLED} from delivery d
    where d.subscription_id = ${subscription} and d.created_at <= ${before} and +d.tenant_id = ?1
    order by d.created_at desc limit ${limit}) d
  where d.last_attempt_at is not null and d.expires_at > ?3 and not (d.subscription_id = ?4 and d.replay_no = 0))`;

export function createHealthLedger(db: D1Database) {
  return {
    /**
     * An endpoint, and its newest attempts, newest first: those that were answered, less faults of ours and test sends. There
     * is no index of attempts by endpoint, since each event would pay for it: they are found by their deliveries, in a number
     * of reads that does not depend on how many there are. Of each of the endpoint's subscriptions (subscription_endpoint) those
     * made before what is waiting by now, which a search by doubling and halving finds behind a backlog of any length, and some
     * of several ages, of which retries may be young (delivery_subscription); and the heads of its lanes (delivery_lane). Null
     * when there is no such endpoint.
     */
    async readHealth(
      tenantId: string,
      endpointId: string,
      now: number,
    ): Promise<{ endpoint: HealthEndpoint; attempts: HealthAttempt[] } | null> {
      const [endpoints, attempts] = await db.batch<Row>([
        db
          .prepare(
            `select ep.paused_at, iif(t.status = 'active', null, coalesce(t.suspended_at, 0)) as suspended_at, ep.disabled_at,
               ep.disabled_reason, ep.quarantined_at, ep.failing_since, ep.disable_after_failing_seconds
             from endpoint ep cross join tenant t on t.id = ep.tenant_id
             where ep.tenant_id = ? and ep.id = ? and ep.deleted_at is null`,
          )
          .bind(tenantId, endpointId),
        db
          .prepare(
            `with recursive
             sub (id) as materialized (
               select id from (select id from subscription where endpoint_id = ?2 and deleted_at is null
                               and +tenant_id = ?1 order by created_at desc limit ${MAX_LIVING})
               union
               select id from (select id from subscription where endpoint_id = ?2 and deleted_at is not null
                               and +tenant_id = ?1 order by deleted_at desc limit ${MAX_DELETED})
               union select ?4),
             -- Doubles the age until something tried is as old, or nothing is; then halves what is left between.
             edge (sub, at, step, is_found, is_tried) as (
               select id, ?3, 1, 0, ${isTriedAt("id", "?3 - 1")} from sub
               union all
               select sub, iif(is_found, at + step * is_tried, ?3 - step),
                 iif(is_found, step / 2, iif(is_tried, step / 4, step * 2)), is_found or is_tried,
                 ${isTriedAt(
                   "edge.sub",
                   `iif(is_found, at + step * is_tried + step / 2, ?3 - iif(is_tried, step - step / 4, step * 2))`,
                 )}
               from edge where step > 0),
             head (lane_key, n) as (
               select (select min(d.lane_key) from delivery d where ${IN_LANE}), 1
               union all
               select (select min(d.lane_key) from delivery d where ${IN_LANE} and d.lane_key > head.lane_key), n + 1
               from head where head.lane_key is not null and n < ${MAX_HEADS}),
             sample (event_id, replay_no, attempt_count, last_attempt_at) as materialized (
               select j.value ->> 0, j.value ->> 1, j.value ->> 2, j.value ->> 3
               from edge cross join json_each(${newestBefore("edge.sub", "edge.at", AT_THE_EDGE)}) j
               where edge.step = 0
               union
               select j.value ->> 0, j.value ->> 1, j.value ->> 2, j.value ->> 3
               from sub cross join json_each(?5) age
               cross join json_each(${newestBefore("sub.id", "?3 - age.value", AT_AN_AGE)}) j
               union
               select d.event_id, d.replay_no, d.attempt_count, d.last_attempt_at
               from head cross join delivery d on ${IN_LANE} and d.lane_key = head.lane_key and d.lane_position = (
                 select min(d.lane_position) from delivery d where ${IN_LANE} and d.lane_key = head.lane_key)
               where head.lane_key is not null and d.last_attempt_at is not null and d.expires_at > ?3 and d.tenant_id = ?1
               order by 4 desc limit ${MAX_DELIVERIES})
             select a.requested_at, a.latency_ms, a.status_code, a.outcome_class, a.error_class
             from sample s cross join attempt a on a.tenant_id = ?1 and a.event_id = s.event_id and a.endpoint_id = ?2
               and a.replay_no = s.replay_no and a.attempt_number > s.attempt_count - ${ATTEMPTS_EACH}
             where a.outcome_class is not null and coalesce(a.error_class, '') not in ('internal', 'abandoned')
             order by a.requested_at desc, a.event_id desc, a.attempt_number desc limit ${MAX_ATTEMPTS}`,
          )
          .bind(tenantId, endpointId, now, testSubscriptionId(endpointId), JSON.stringify(AGES_MS)),
      ]);
      const endpoint = endpoints!.results[0];
      if (!endpoint) return null;
      return {
        endpoint: {
          pausedAt: endpoint["paused_at"],
          suspendedAt: endpoint["suspended_at"],
          quarantinedAt: endpoint["quarantined_at"],
          disabledAt: endpoint["disabled_at"],
          disabledReason: endpoint["disabled_reason"],
          failingSince: endpoint["failing_since"],
          disableAfterFailingSeconds: endpoint["disable_after_failing_seconds"],
        },
        attempts: attempts!.results.map((row) => ({
          requestedAt: row["requested_at"],
          latencyMs: row["latency_ms"],
          statusCode: row["status_code"],
          outcomeClass: row["outcome_class"],
          errorClass: row["error_class"],
        })),
      };
    },
  };
}
