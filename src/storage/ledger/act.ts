import type { DeliveryRef } from "../../core/ids.ts";
import type { RetryPolicy } from "../../core/retry-policy.ts";
import { redateBehind } from "./block.ts";
import { disableEndpoint } from "./disable.ts";
import { owedToEndpoint } from "./fan-out.ts";
import { LANE_KEY } from "./lane-key.ts";
import { inFront } from "./lane-position.ts";
import { ringFor, type OutboxBell } from "./raise.ts";
import { REPLAYED_VERSION } from "./replayed-version.ts";
import { keepRetryPolicy, toRetryPolicyRow } from "../config/retry-policies.ts";

/** Of the lane of event `e` at endpoint `ep`. */
const SAME_LANE = `x.endpoint_id = ep.id and x.lane_key = ${LANE_KEY} and x.terminal_at is null and x.lane_key is not null`;
const BLOCKED_HEAD = "b.endpoint_id = d.endpoint_id and b.event_id = d.event_id and b.replay_no = d.replay_no";

const KEY = "tenant_id = ?1 and event_id = ?2 and endpoint_id = ?3 and replay_no = ?4";
/** Rows moved by one statement, so that no statement grows with a backlog. */
const CHUNK = 500;

/** What operators and endpoint changes do to deliveries. */
export function createActLedger(db: D1Database, bell: OutboxBell = () => {}) {
  return {
    /** Makes a pending delivery due now; order, cap and rate still apply. False when it is not pending, or held. */
    async makeDue(tenantId: string, ref: DeliveryRef, now: number): Promise<boolean> {
      const { meta } = await db
        .prepare(
          `update delivery set next_attempt_at = ?5 where ${KEY} and status = 'pending' and hold_until is null
             and exists (select 1 from endpoint e cross join tenant t on t.id = e.tenant_id and t.status = 'active'
               where e.tenant_id = ?1 and e.id = ?3 and e.disabled_at is null
                 and e.paused_at is null and e.deleted_at is null)`,
        )
        .bind(tenantId, ref.eventId, ref.endpointId, ref.replayNo, now)
        .run();
      return meta.changes > 0;
    },

    /** Lets a lane go on without its dead head. False when it is not a blocked head, or has expired. lane_block. */
    async skipHead(tenantId: string, ref: DeliveryRef, now: number): Promise<boolean> {
      const [, skipped] = await db.batch([
        redateBehind(db, { tenantId, ...ref }, now),
        db
          .prepare(
            `delete from lane_block where endpoint_id = ?3 and tenant_id = ?1 and event_id = ?2 and replay_no = ?4
               and exists (select 1 from delivery where ${KEY} and expires_at > ?5)`,
          )
          .bind(tenantId, ref.eventId, ref.endpointId, ref.replayNo, now),
      ]);
      return skipped!.meta.changes > 0;
    },

    /** Cancels a pending delivery. False when it is not pending. */
    async cancelDelivery(tenantId: string, ref: DeliveryRef, now: number): Promise<boolean> {
      const { meta } = await db
        .prepare(
          `update delivery set status = 'cancelled', final_outcome = 'cancelled', terminal_at = ?5,
             next_attempt_at = null, hold_until = null
           where ${KEY} and status = 'pending'`,
        )
        .bind(tenantId, ref.eventId, ref.endpointId, ref.replayNo, now)
        .run();
      return meta.changes > 0;
    },

    /**
     * Inserts the next replay of a terminal delivery and links both, in one batch. The number comes from the rows, so two
     * at once get two numbers. In a lane it joins at the tail; that of a blocked head alone goes to the front and unblocks
     * the lane. Null when the delivery is not terminal, its endpoint is disabled or deleted, or its
     * event expired, without its payload, or without the version that its subscription asks for now.
     */
    async insertReplay(
      tenantId: string,
      ref: DeliveryRef,
      policy: RetryPolicy | null,
      now: number,
    ): Promise<number | null> {
      const policyRow = policy && (await toRetryPolicyRow(policy));
      const key = [tenantId, ref.eventId, ref.endpointId, ref.replayNo];
      const next = `(select max(replay_no) from delivery where tenant_id = ?1 and event_id = ?2 and endpoint_id = ?3)`;
      const results = await db.batch<{ replay_no: number }>([
        ...keepRetryPolicy(db, tenantId, policyRow),
        redateBehind(db, { tenantId, ...ref }, now),
        db
          .prepare(
            `insert into delivery (tenant_id, event_id, endpoint_id, replay_no, subscription_id, status,
               retry_policy_id, created_at, scheduled_at, next_attempt_at, replay_of, relay_region, expires_at,
               lane_key, lane_position, schema_version)
             select d.tenant_id, d.event_id, d.endpoint_id, ${next} + 1, d.subscription_id, 'pending',
               coalesce(?6, s.retry_policy_id, ep.retry_policy_id), ?5, iif(ep.route = 'queue', ?5, null), ?5,
               d.replay_no, d.relay_region, d.expires_at, ${LANE_KEY},
               iif(ep.route = 'queue', null, iif(
                 exists (select 1 from lane_block b where ${BLOCKED_HEAD}),
                 ${inFront(`(select min(x.lane_position) from delivery x where ${SAME_LANE})`)},
                 max(0, coalesce((select max(x.lane_position) from delivery x where ${SAME_LANE}), 0)) + 1)),
               ${REPLAYED_VERSION}
             from delivery d
             cross join event e on e.tenant_id = d.tenant_id and e.id = d.event_id
             cross join endpoint ep on ep.tenant_id = d.tenant_id and ep.id = d.endpoint_id
             cross join subscription s on s.tenant_id = d.tenant_id and s.id = d.subscription_id
             where d.tenant_id = ?1 and d.event_id = ?2 and d.endpoint_id = ?3 and d.replay_no = ?4
               and d.terminal_at is not null and ep.disabled_at is null and ep.deleted_at is null
               and e.payload_erased_at is null and e.expires_at > ?5
               and ${REPLAYED_VERSION} is not null
             returning replay_no`,
          )
          .bind(...key, now, policyRow?.id ?? null),
        db
          .prepare(
            `update delivery set replayed_as = ${next} where ${KEY} and terminal_at is not null and exists (
               select 1 from delivery r where r.tenant_id = ?1 and r.event_id = ?2 and r.endpoint_id = ?3
                 and r.replay_no = ${next} and r.replay_of = ?4)`,
          )
          .bind(...key),
        db
          .prepare(
            `delete from lane_block where endpoint_id = ?3 and tenant_id = ?1 and event_id = ?2 and replay_no = ?4
               and exists (select 1 from delivery r where r.tenant_id = ?1 and r.event_id = ?2 and r.endpoint_id = ?3
                 and r.replay_no = ${next} and r.replay_of = ?4)`,
          )
          .bind(...key),
      ]);
      return results.at(-3)!.results[0]?.replay_no ?? null;
    },

    /** What decides the version of a replay: the pin, and which versions of the event's type are retired. Primary keys. */
    async findReplayPin(
      tenantId: string,
      { subscriptionId, eventId }: { subscriptionId: string; eventId: string },
    ): Promise<{ pin: number | null; retired: number[] }> {
      const [subscriptions, versions] = await db.batch<{ schema_version: number | null }>([
        db
          .prepare("select schema_version from subscription where tenant_id = ? and id = ?")
          .bind(tenantId, subscriptionId),
        db
          .prepare(
            `select x.schema_version from event e cross join event_type x on x.tenant_id = e.tenant_id and x.name = e.type
             where e.tenant_id = ? and e.id = ? and x.retired_at is not null`,
          )
          .bind(tenantId, eventId),
      ]);
      return {
        pin: subscriptions!.results[0]?.schema_version ?? null,
        retired: versions!.results.map((row) => row.schema_version!),
      };
    },

    /** By an operator's word, whatever its URL. */
    async disableEndpoint(tenantId: string, endpointId: string, reason: string, now: number): Promise<void> {
      ringFor(bell, await db.batch(disableEndpoint(db, { tenantId, endpointId, url: null, reason, now, by: null })));
    },

    /** Pauses an endpoint that is not paused, or ends the pause of one that is. */
    async pauseEndpoint(tenantId: string, endpointId: string, pausedAt: number | null, now: number): Promise<void> {
      await db.batch([
        db
          .prepare(
            `update endpoint set paused_at = ?3, resumed_at = iif(?3 is null, ?4, resumed_at), revision = revision + 1
             where tenant_id = ?1 and id = ?2 and deleted_at is null and (paused_at is null) <> (?3 is null)`,
          )
          .bind(tenantId, endpointId, pausedAt, now),
        db.prepare("update tenant set revision = revision + 1 where id = ?").bind(tenantId),
      ]);
    },

    /** Gives an endpoint's lane to a new object; the present one gets no claim any more. False when it is not there. */
    async moveLane(tenantId: string, endpointId: string): Promise<boolean> {
      const [endpoint] = await db.batch([
        db
          .prepare(
            `update endpoint set lane_generation = lane_generation + 1, revision = revision + 1
             where tenant_id = ?1 and id = ?2 and deleted_at is null`,
          )
          .bind(tenantId, endpointId),
        db.prepare("update tenant set revision = revision + 1 where id = ?").bind(tenantId),
      ]);
      return endpoint!.meta.changes > 0;
    },

    async enableEndpoint(tenantId: string, endpointId: string): Promise<void> {
      await db.batch([
        owedToEndpoint(db, tenantId, endpointId),
        db
          .prepare(
            `update endpoint set disabled_at = null, disabled_reason = null, failing_since = null, failure_noted_at = null,
               revision = revision + 1
             where tenant_id = ?1 and id = ?2 and disabled_at is not null and deleted_at is null`,
          )
          .bind(tenantId, endpointId),
        db.prepare("update tenant set revision = revision + 1 where id = ?").bind(tenantId),
      ]);
    },

    /**
     * Puts up to CHUNK held deliveries of an endpoint that nothing holds any more, or that is deleted, back among the due
     * ones, oldest first; gives them back. An empty answer says that none is left. delivery_lane.
     */
    async releaseHeldPart(tenantId: string, endpointId: string, now: number) {
      const { results } = await db
        .prepare(
          `update delivery set lane_key = null, lane_position = null, hold_until = null,
             next_attempt_at = max(next_attempt_at, ?3)
           where (tenant_id, event_id, endpoint_id, replay_no) in (
             select tenant_id, event_id, endpoint_id, replay_no from delivery
             where endpoint_id = ?2 and lane_key is not null and terminal_at is null and tenant_id = ?1
               and hold_until is not null
             order by lane_key, lane_position limit ${CHUNK})
             and exists (select 1 from endpoint e cross join tenant t on t.id = e.tenant_id
               where e.tenant_id = ?1 and e.id = ?2 and (e.deleted_at is not null
                 or e.disabled_at is null and e.paused_at is null and t.status = 'active'))
           returning event_id, replay_no, attempt_count`,
        )
        .bind(tenantId, endpointId, now)
        .all<{ event_id: string; replay_no: number; attempt_count: number }>();
      return results.map((row) => ({
        eventId: row.event_id,
        endpointId,
        replayNo: row.replay_no,
        attemptCount: row.attempt_count,
      }));
    },

    /**
     * Ends up to CHUNK pending deliveries of a deleted endpoint that are held, and as many that are not; says whether more
     * may be left. delivery_lane and delivery_due: the plus keeps the planner from walking the tenant's history instead.
     */
    async endDeliveriesOfEndpointPart(tenantId: string, endpointId: string, now: number): Promise<boolean> {
      const end = (where: string) =>
        db
          .prepare(
            `update delivery set status = 'failed', final_outcome = 'endpoint_deleted', terminal_at = ?3,
               next_attempt_at = null, hold_until = null
             where (tenant_id, event_id, endpoint_id, replay_no) in (
               select tenant_id, event_id, endpoint_id, replay_no from delivery
               where ${where} and status = 'pending' and terminal_at is null and endpoint_id = ?2 and +tenant_id = ?1
               limit ${CHUNK})`,
          )
          .bind(tenantId, endpointId, now);
      const results = await db.batch([end("lane_key is not null"), end("lane_key is null")]);
      return results.some(({ meta }) => meta.changes === CHUNK);
    },
  };
}
