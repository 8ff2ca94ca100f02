import type { DeliveryRef } from "../../core/ids.ts";
import type { RetryPolicy } from "../../core/retry-policy.ts";

type Row = Record<string, any>;

/** Work that is due and its place in the order of the due index. */
export interface DueDelivery extends DeliveryRef {
  tenantId: string;
  attemptCount: number;
  nextAttemptAt: number;
}

/** A claim whose lease has ended without a close. */
export interface ExpiredLease extends DeliveryRef {
  tenantId: string;
  attemptNumber: number;
  token: string;
  requestedAt: number;
  endpointRevision: number;
  policy: RetryPolicy;
  failureCount: number;
  relayFaultCount: number;
  scheduledAt: number;
  expiresAt: number;
}

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
                  a.requested_at, a.endpoint_revision
           from (select * from delivery where ${LEASED} and next_attempt_at <= ?1 order by next_attempt_at limit ?2) d
           cross join retry_policy p on p.tenant_id = d.tenant_id and p.id = d.retry_policy_id
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
        endpointRevision: row["endpoint_revision"],
        policy: JSON.parse(row["policy"]),
        failureCount: row["failure_count"],
        relayFaultCount: row["relay_fault_count"],
        scheduledAt: row["scheduled_at"],
        expiresAt: row["expires_at"],
      }));
    },

    /** Held deliveries whose waiting has ended. delivery_hold. */
    async listEndedHolds(now: number, limit: number): Promise<(DeliveryRef & { tenantId: string })[]> {
      const { results } = await db
        .prepare(
          `select tenant_id, event_id, endpoint_id, replay_no from delivery
           where hold_until is not null and hold_until <= ? order by hold_until limit ?`,
        )
        .bind(now, limit)
        .all<Row>();
      return results.map(toRef);
    },

    /**
     * Endpoints that are enabled or deleted though deliveries are held for them, among those of the next `limit` held
     * deliveries behind `after`: a change that died half-way. delivery_hold.
     */
    async listStrandedHolds(
      after: number,
      limit: number,
    ): Promise<{ endpoints: { tenantId: string; endpointId: string }[]; next: number | null }> {
      const { results } = await db
        .prepare(
          `select h.tenant_id, h.endpoint_id, h.hold_until,
                  ep.disabled_at is not null and ep.deleted_at is null as holds from (
             select tenant_id, endpoint_id, hold_until from delivery
             where hold_until is not null and hold_until > ? order by hold_until limit ?) h
           cross join endpoint ep on ep.tenant_id = h.tenant_id and ep.id = h.endpoint_id`,
        )
        .bind(after, limit)
        .all<Row>();
      const stranded = new Map(
        results
          .filter((row) => row["holds"] === 0)
          .map((row) => [row["endpoint_id"] as string, { tenantId: row["tenant_id"], endpointId: row["endpoint_id"] }]),
      );
      const last = results.length === limit ? (results.at(-1)!["hold_until"] as number) : null;
      return { endpoints: [...stranded.values()], next: last };
    },

    /** When the watchdog is needed next: the first due work after `now`, and the first that is due already. */
    async findNextDue(now: number): Promise<{ nextDueAt: number | null; oldestDueAt: number | null }> {
      const row = await db
        .prepare(
          `select (select min(next_attempt_at) from delivery where ${DUE} and next_attempt_at > ?1) as pending_at,
                  (select min(next_attempt_at) from delivery where ${DUE} and next_attempt_at <= ?1) as oldest_at,
                  (select min(next_attempt_at) from delivery where ${LEASED}) as lease_at,
                  (select min(hold_until) from delivery where hold_until is not null) as hold_at`,
        )
        .bind(now)
        .first<Row>();
      const times = [row!["pending_at"], row!["lease_at"], row!["hold_at"]].filter((time) => time !== null);
      return { nextDueAt: times.length > 0 ? Math.min(...times) : null, oldestDueAt: row!["oldest_at"] };
    },

    /** The next events in order of the primary key, behind `after`; expired ones among them are to be deleted. */
    async walkEvents(after: [tenantId: string, eventId: string], limit: number) {
      const { results } = await db
        .prepare(
          `select tenant_id, id, payload_ref, expires_at from event
           where (tenant_id, id) > (?, ?) order by tenant_id, id limit ?`,
        )
        .bind(...after, limit)
        .all<Row>();
      return results.map((row) => ({
        tenantId: row["tenant_id"] as string,
        id: row["id"] as string,
        payloadRef: row["payload_ref"] as string,
        expiresAt: row["expires_at"] as number,
      }));
    },

    /** Deletes events with their deliveries and attempts, but for those with a delivery that is still open. */
    async deleteEvents(events: { tenantId: string; id: string }[]): Promise<void> {
      const keys = JSON.stringify(events.map(({ tenantId, id }) => [tenantId, id]));
      const closed = `select j.value ->> 0, j.value ->> 1 from json_each(?1) j where not exists (
        select 1 from delivery d where d.tenant_id = j.value ->> 0 and d.event_id = j.value ->> 1
          and d.terminal_at is null)`;
      await db.batch([
        db.prepare(`delete from attempt where (tenant_id, event_id) in (${closed})`).bind(keys),
        db.prepare(`delete from delivery where (tenant_id, event_id) in (${closed})`).bind(keys),
        db
          .prepare(
            `delete from event where (tenant_id, id) in (
               select j.value ->> 0, j.value ->> 1 from json_each(?1) j where not exists (
                 select 1 from delivery d where d.tenant_id = j.value ->> 0 and d.event_id = j.value ->> 1))`,
          )
          .bind(keys),
      ]);
    },
  };
}

function toRef(row: Row): DeliveryRef & { tenantId: string } {
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
