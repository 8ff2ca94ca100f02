import type { TenantDeliveryRef } from "../../core/ids.ts";
import { placeOf } from "./lane-position.ts";
import {
  LOADED_COLUMNS,
  LOADED_JOINS,
  selectOfEndpoints,
  toLoadedDelivery,
  type LoadedDelivery,
} from "./loaded-delivery.ts";

export type { TenantDeliveryRef } from "../../core/ids.ts";

export interface Claim extends TenantDeliveryRef {
  attemptNumber: number;
  /** Chosen by the claimant before the write, so that a claim whose answer was lost can be taken up again. */
  token: string;
  endpointRevision: number;
  signingSecretIds: string[];
  workerId: string;
  relayRegion: string | null;
  leaseMs: number;
}

const KEY = "tenant_id = ?1 and event_id = ?2 and endpoint_id = ?3 and replay_no = ?4";

export function createDeliverLedger(db: D1Database) {
  return {
    /** The deliveries that exist among `refs`, in one trip. Primary keys throughout. `region` is the ledger's, if known. */
    async loadDeliveries(refs: TenantDeliveryRef[]): Promise<{ deliveries: LoadedDelivery[]; region: string | null }> {
      const keys = JSON.stringify(refs.map((r) => [r.tenantId, r.eventId, r.endpointId, r.replayNo]));
      const endpoints = JSON.stringify(
        [...new Set(refs.map((r) => `${r.tenantId}/${r.endpointId}`))].map((r) => r.split("/")),
      );
      const [deliveries, ofEndpoints] = await db.batch<Record<string, any>>([
        db
          .prepare(
            `select ${LOADED_COLUMNS}
             from json_each(?1) j
             cross join delivery d on d.tenant_id = j.value ->> 0 and d.event_id = j.value ->> 1
               and d.endpoint_id = j.value ->> 2 and d.replay_no = j.value ->> 3
             ${LOADED_JOINS}`,
          )
          .bind(keys),
        selectOfEndpoints(db, endpoints),
      ]);
      return {
        deliveries: deliveries!.results.map((row) => toLoadedDelivery(row, ofEndpoints!.results)),
        region: deliveries!.meta.served_by_region ?? null,
      };
    },

    /**
     * Claims what is still pending, due, queue-routed and allowed by its endpoint *now*, and opens its attempt, in one
     * batch. Gives back the tokens that hold a claim. Doing it again with the same tokens changes nothing.
     */
    async claimDeliveries(claims: Claim[], now: number): Promise<Set<string>> {
      const results = await db.batch<{ token: string }>(
        claims.flatMap((claim) => [claimDelivery(db, claim, now), openAttempt(db, claim, now)]),
      );
      return new Set(results.flatMap(({ results: rows }) => rows.map(({ token }) => token)));
    },

    /**
     * Takes a claim back under which no request was made. Its attempt goes with it: on record are requests. A claim that has
     * been taken over, closed or abandoned meanwhile stays as it is.
     */
    async giveBack(claim: Claim, now: number): Promise<void> {
      const key = [claim.tenantId, claim.eventId, claim.endpointId, claim.replayNo, claim.token, claim.attemptNumber];
      const isMine = `status = 'processing' and token = ?5 and attempt_count = ?6`;
      await db.batch([
        db
          .prepare(
            `delete from attempt where ${KEY} and attempt_number = ?6 and outcome_class is null
               and exists (select 1 from delivery where ${KEY} and ${isMine})`,
          )
          .bind(...key),
        db
          .prepare(
            `update delivery set status = 'pending', token = null, locked_until = null, attempt_count = ?6 - 1,
               next_attempt_at = ?7, lane_position = ${placeOf("lane_position")}, last_attempt_at = (select a.requested_at from attempt a
                 where a.tenant_id = ?1 and a.event_id = ?2 and a.endpoint_id = ?3 and a.replay_no = ?4
                   and a.attempt_number = ?6 - 1)
             where ${KEY} and ${isMine}`,
          )
          .bind(...key, now),
      ]);
    },

    /**
     * Holds deliveries whose endpoint is paused or disabled, or their tenant suspended: out of the due index, until it goes on or
     * their time is up.
     */
    async holdDeliveries(holds: (TenantDeliveryRef & { holdUntil: number })[]): Promise<void> {
      await db.batch(
        holds.map(({ tenantId, eventId, endpointId, replayNo, holdUntil }) =>
          db
            .prepare(
              `update delivery set lane_key = ' ' || event_id, lane_position = replay_no, hold_until = ?5
               where ${KEY} and status = 'pending' and lane_key is null
                 and exists (select 1 from endpoint e cross join tenant t on t.id = e.tenant_id
                   where e.tenant_id = ?1 and e.id = ?3
                     and (e.paused_at is not null or e.disabled_at is not null or t.status <> 'active'))`,
            )
            .bind(tenantId, eventId, endpointId, replayNo, holdUntil),
        ),
      );
    },

    /**
     * Ends deliveries for which no request will be made any more. Only `pending` ones: an attempt in flight ends itself. Says of
     * each whether it has ended by this.
     */
    async endDeliveries(
      ends: (TenantDeliveryRef & { status: "failed" | "expired" | "cancelled"; finalOutcome: string })[],
      now: number,
    ): Promise<boolean[]> {
      const results = await db.batch(
        ends.map(({ tenantId, eventId, endpointId, replayNo, status, finalOutcome }) =>
          db
            .prepare(
              `update delivery set status = ?5, final_outcome = ?6, terminal_at = ?7, next_attempt_at = null,
                 hold_until = null, last_error_class = iif(?6 = 'destination_blocked', 'blocked_destination', last_error_class)
               where ${KEY} and status = 'pending'`,
            )
            .bind(tenantId, eventId, endpointId, replayNo, status, finalOutcome, now),
        ),
      );
      return results.map(({ meta }) => meta.changes > 0);
    },
  };
}

/** The row and its endpoint prove everything here, whatever the claimant believed. */
function claimDelivery(db: D1Database, claim: Claim, now: number): D1PreparedStatement {
  return db
    .prepare(
      `update delivery set status = 'processing', token = ?5, attempt_count = ?6, last_attempt_at = ?7,
         locked_until = ?8, next_attempt_at = ?8
       where ${KEY} and (token = ?5 or (
         status = 'pending' and lane_key is null and attempt_count = ?6 - 1 and next_attempt_at <= ?7
         and exists (
           select 1 from endpoint e cross join tenant t on t.id = e.tenant_id and t.status = 'active'
           where e.tenant_id = ?1 and e.id = ?3 and e.revision = ?9 and e.route = 'queue'
             and e.paused_at is null and e.disabled_at is null and e.deleted_at is null)))
       returning token`,
    )
    .bind(
      claim.tenantId,
      claim.eventId,
      claim.endpointId,
      claim.replayNo,
      claim.token,
      claim.attemptNumber,
      now,
      now + claim.leaseMs,
      claim.endpointRevision,
    );
}

export function openAttempt(db: D1Database, claim: Claim, now: number): D1PreparedStatement {
  return db
    .prepare(
      `insert into attempt (tenant_id, event_id, endpoint_id, replay_no, attempt_number, requested_at, worker_id,
         relay_region, endpoint_revision, signing_secret_ids)
       select tenant_id, event_id, endpoint_id, replay_no, ?6, ?7, ?8, ?11, ?9, ?10
       from delivery where ${KEY} and token = ?5
       on conflict do nothing`,
    )
    .bind(
      claim.tenantId,
      claim.eventId,
      claim.endpointId,
      claim.replayNo,
      claim.token,
      claim.attemptNumber,
      now,
      claim.workerId,
      claim.endpointRevision,
      JSON.stringify(claim.signingSecretIds),
      claim.relayRegion,
    );
}
