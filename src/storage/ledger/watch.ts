import { FAN_OUT_OVERDUE_MS } from "../../core/fan-out.ts";
import { eventIdTimeMs, type TenantDeliveryRef } from "../../core/ids.ts";
import type { RetryPolicy } from "../../core/retry-policy.ts";
import { IS_TEST_SEND } from "./test-send.ts";
import { WHY_WAKE } from "./why-wake.ts";

type Row = Record<string, any>;

const OPEN_IN_LANE = "terminal_at is null and lane_key is not null";

/** Work that is due and its place in the order of the due index. */
export interface DueDelivery extends TenantDeliveryRef {
  attemptCount: number;
  nextAttemptAt: number;
}

/** A claim whose lease has ended without a close. */
export interface ExpiredLease extends TenantDeliveryRef {
  attemptNumber: number;
  token: string;
  requestedAt: number;
  endpointUrl: string;
  policy: RetryPolicy;
  failureCount: number;
  relayFaultCount: number;
  scheduledAt: number;
  expiresAt: number;
  /** A test send: no other attempt is made. */
  isLast: boolean;
}

/** The place of a held delivery in the order in which holds end. */
type HoldKey = [holdUntil: number, tenantId: string, eventId: string, endpointId: string, replayNo: number];

const DUE = "status = 'pending' and terminal_at is null and lane_key is null";
const LEASED = "status = 'processing' and terminal_at is null and lane_key is null";

/** What the watchdog asks of the ledger. Every query is bounded by its limit, whatever the backlog. */
export function createWatchLedger(db: D1Database) {
  return {
    /** Due no later than `until`, oldest first, behind `after`. delivery_due. */
    async listDue(until: number, after: DueDelivery | null, limit: number): Promise<DueDelivery[]> {
      const { results } = await db
        .prepare(
          `select tenant_id, event_id, endpoint_id, replay_no, attempt_count, next_attempt_at from delivery
           where ${DUE} and next_attempt_at <= ?1 and next_attempt_at >= ?2
             and (next_attempt_at, tenant_id, event_id, endpoint_id, replay_no) > (?2, ?3, ?4, ?5, ?6)
           order by next_attempt_at, tenant_id, event_id, endpoint_id, replay_no limit ?7`,
        )
        .bind(
          until,
          after?.nextAttemptAt ?? -1,
          after?.tenantId ?? "",
          after?.eventId ?? "",
          after?.endpointId ?? "",
          after?.replayNo ?? 0,
          limit,
        )
        .all<Row>();
      return results.map(toDue);
    },

    /** Retries that no message rings for, because they wait longer than `minDelayMs`, due in (from, until]. delivery_due. */
    async listLongRetriesDue(from: number, until: number, minDelayMs: number, limit: number): Promise<DueDelivery[]> {
      const { results } = await db
        .prepare(
          `select tenant_id, event_id, endpoint_id, replay_no, attempt_count, next_attempt_at from delivery
           where ${DUE} and next_attempt_at > ?1 and next_attempt_at <= ?2
             and attempt_count > 0 and next_attempt_at - last_attempt_at > ?3
           order by next_attempt_at limit ?4`,
        )
        .bind(from, until, minDelayMs, limit)
        .all<Row>();
      return results.map(toDue);
    },

    /** delivery_due (a lease's end stands in next_attempt_at). */
    async listExpiredLeases(now: number, limit: number): Promise<ExpiredLease[]> {
      const { results } = await db
        .prepare(
          `select d.tenant_id, d.event_id, d.endpoint_id, d.replay_no, d.attempt_count, d.token, d.failure_count,
                  d.relay_fault_count, coalesce(d.scheduled_at, d.created_at) as scheduled_at, d.expires_at, p.policy,
                  a.requested_at, ep.url, ${IS_TEST_SEND} as is_last
           from (select * from delivery where ${LEASED} and next_attempt_at <= ?1 order by next_attempt_at limit ?2) d
           cross join retry_policy p on p.tenant_id = d.tenant_id and p.id = d.retry_policy_id
           cross join endpoint ep on ep.tenant_id = d.tenant_id and ep.id = d.endpoint_id
           cross join event e on e.tenant_id = d.tenant_id and e.id = d.event_id
           cross join attempt a on a.tenant_id = d.tenant_id and a.event_id = d.event_id
             and a.endpoint_id = d.endpoint_id and a.replay_no = d.replay_no and a.attempt_number = d.attempt_count`,
        )
        .bind(now, limit)
        .all<Row>();
      return results.map((row) => ({
        tenantId: row["tenant_id"],
        eventId: row["event_id"],
        endpointId: row["endpoint_id"],
        replayNo: row["replay_no"],
        attemptNumber: row["attempt_count"],
        token: row["token"],
        requestedAt: row["requested_at"],
        endpointUrl: row["url"],
        policy: JSON.parse(row["policy"]),
        failureCount: row["failure_count"],
        relayFaultCount: row["relay_fault_count"],
        scheduledAt: row["scheduled_at"],
        expiresAt: row["expires_at"],
        isLast: row["is_last"] === 1,
      }));
    },

    /**
     * Held deliveries whose waiting has ended, among the first `limit`. One that was held while its endpoint was disabled, with
     * its clock running, and is held by a pause or a suspension by now, goes on waiting until its event ends. delivery_hold.
     */
    async listEndedHolds(now: number, limit: number): Promise<TenantDeliveryRef[]> {
      const ended = (isStopped: string) =>
        `select h.tenant_id, h.event_id, h.endpoint_id, h.replay_no from (
           select tenant_id, event_id, endpoint_id, replay_no, expires_at from delivery
           where hold_until is not null and hold_until <= ?1 order by hold_until limit ?2) h
         cross join endpoint ep on ep.tenant_id = h.tenant_id and ep.id = h.endpoint_id
         cross join tenant t on t.id = h.tenant_id
         where ${isStopped} (h.expires_at > ?1 and ep.disabled_at is null and ep.deleted_at is null
           and (ep.paused_at is not null or t.status <> 'active'))`;
      const [, rows] = await db.batch<Row>([
        db
          .prepare(
            `update delivery set hold_until = expires_at
             where (tenant_id, event_id, endpoint_id, replay_no) in (${ended("")})`,
          )
          .bind(now, limit),
        db.prepare(ended("not")).bind(now, limit),
      ]);
      return rows!.results.map(toRef);
    },

    /**
     * Endpoints that nothing holds any more, or that are deleted, though deliveries are held for them, among those of the next
     * `limit` held deliveries behind `after`: a change that died half-way. delivery_hold.
     */
    async listStrandedHolds(after: HoldKey | null, limit: number) {
      const { results } = await db
        .prepare(
          `select h.*, ep.deleted_at is null
             and (ep.disabled_at is not null or ep.paused_at is not null or t.status <> 'active') as holds from (
             select hold_until, tenant_id, event_id, endpoint_id, replay_no from delivery
             where hold_until is not null and hold_until >= ?1
               and (hold_until, tenant_id, event_id, endpoint_id, replay_no) > (?1, ?2, ?3, ?4, ?5)
             order by hold_until, tenant_id, event_id, endpoint_id, replay_no limit ?6) h
           cross join endpoint ep on ep.tenant_id = h.tenant_id and ep.id = h.endpoint_id
           cross join tenant t on t.id = h.tenant_id`,
        )
        .bind(...(after ?? [-1, "", "", "", 0]), limit)
        .all<Row>();
      const stranded = new Map<string, { tenantId: string; endpointId: string }>();
      for (const { holds, tenant_id: tenantId, endpoint_id: endpointId } of results) {
        if (holds === 0) stranded.set(endpointId, { tenantId, endpointId });
      }
      return { endpoints: [...stranded.values()], next: results.length === limit ? toHoldKey(results.at(-1)!) : null };
    },

    /**
     * Endpoints whose lane is overdue, among the next `limit` endpoints with open work in a lane: a loose scan reads one row
     * an endpoint, and idle lanes have none. A lane that stands still is overdue by what has expired, or by its clocks where
     * those run on; one of a deleted endpoint always. Of a strict lane its head is looked at, of others the first 200 rows, and
     * `isDue` is false where it is only known that there are more, or that something is overdue behind a head that is not. delivery_lane.
     */
    async listOverdueLanes(after: string, overdueBefore: number, limit: number) {
      const { results } = await db
        .prepare(
          `with recursive lane (endpoint_id, n) as (
             select (select min(endpoint_id) from delivery where ${OPEN_IN_LANE} and endpoint_id > ?1), 1
             union all
             select (select min(endpoint_id) from delivery where ${OPEN_IN_LANE} and endpoint_id > lane.endpoint_id), n + 1
             from lane where lane.endpoint_id is not null and n < ?3)
           select l.endpoint_id, l.tenant_id, ep.lane_generation,
             ${WHY_WAKE} as why
           from (select endpoint_id, (select tenant_id from delivery x where x.endpoint_id = lane.endpoint_id
                   and x.terminal_at is null and x.lane_key is not null limit 1) as tenant_id
                 from lane where endpoint_id is not null) l
           cross join endpoint ep on ep.tenant_id = l.tenant_id and ep.id = l.endpoint_id
           cross join tenant t on t.id = l.tenant_id
           order by l.endpoint_id`,
        )
        .bind(after, overdueBefore, limit)
        .all<Row>();
      const lanes = results
        .filter((row) => row["why"] !== null)
        .map((row) => ({
          tenantId: row["tenant_id"] as string,
          endpointId: row["endpoint_id"] as string,
          generation: row["lane_generation"] as number,
          isDue: row["why"] === "due",
        }));
      return { lanes, next: results.length === limit ? (results.at(-1)!["endpoint_id"] as string) : null };
    },

    /**
     * When the watchdog is needed next: the first due work after `now` (a fan-out when it is overdue), a replay's next step, and
     * the first delivery that is due already.
     */
    async findNextDue(now: number): Promise<{ nextDueAt: number | null; oldestDueAt: number | null }> {
      const row = await db
        .prepare(
          `select (select min(next_attempt_at) from delivery where ${DUE} and next_attempt_at > ?1) as pending_at,
                  (select min(next_attempt_at) from delivery where ${DUE} and next_attempt_at <= ?1) as oldest_at,
                  (select min(next_attempt_at) from delivery where ${LEASED}) as lease_at,
                  (select min(hold_until) from delivery where hold_until is not null) as hold_at,
                  (select min(event_id) from fan_out) as fan_out_id,
                  (select min(next_step_at) from replay_part) as replay_at`,
        )
        .bind(now)
        .first<Row>();
      const fanOutAt = row!["fan_out_id"] === null ? null : eventIdTimeMs(row!["fan_out_id"]) + FAN_OUT_OVERDUE_MS;
      const times = [row!["pending_at"], row!["lease_at"], row!["hold_at"], row!["replay_at"], fanOutAt].filter(
        (time) => time !== null,
      );
      return { nextDueAt: times.length > 0 ? Math.min(...times) : null, oldestDueAt: row!["oldest_at"] };
    },
  };
}

function toHoldKey(row: Row): HoldKey {
  return [row["hold_until"], row["tenant_id"], row["event_id"], row["endpoint_id"], row["replay_no"]];
}

function toRef(row: Row): TenantDeliveryRef {
  return {
    tenantId: row["tenant_id"],
    eventId: row["event_id"],
    endpointId: row["endpoint_id"],
    replayNo: row["replay_no"],
  };
}

function toDue(row: Row): DueDelivery {
  return { ...toRef(row), attemptCount: row["attempt_count"], nextAttemptAt: row["next_attempt_at"] };
}
