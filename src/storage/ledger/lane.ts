import type { TenantDeliveryRef } from "../../core/ids.ts";
import { openAttempt, type Claim } from "./deliver.ts";
import {
  LOADED_COLUMNS,
  LOADED_JOINS,
  selectOfEndpoints,
  toLoadedDelivery,
  type LoadedDelivery,
} from "./loaded-delivery.ts";
import { blockLane, standingBlocks } from "./block.ts";
import { closingStatements, type Closing } from "./close.ts";
import { lastOfInFlight, maybeInFlightBefore } from "./lane-position.ts";
import { raiseDeadLetter, ringFor, type OutboxBell } from "./raise.ts";
import { selectSettings, toSettings, type LaneSettings } from "./lane-settings.ts";

type Row = Record<string, any>;

/** What stands in a lane: for each of some lane keys its first rows, in order. */
export interface LaneView {
  /** Null when there is no such endpoint. */
  settings: LaneSettings | null;
  lanes: { laneKey: string; blocked: boolean; deliveries: LoadedDelivery[] }[];
  /** Whether there may be more lane keys behind the last one. */
  hasMore: boolean;
  region: string | null;
}

const KEY = "tenant_id = ?1 and event_id = ?2 and endpoint_id = ?3 and replay_no = ?4";
/** When `endHead` ends delivery `d`, with the endpoint's revision as `?5`. */
const HEAD_ENDS = `d.status = 'pending' and exists (
  select 1 from endpoint x where x.tenant_id = ?1 and x.id = ?3 and x.revision = ?5)`;
/** Keys are visible ASCII and spaces. */
const BEHIND_ALL_KEYS = "\x7f";
const OPEN_IN_LANE = "terminal_at is null and lane_key is not null";

export function createLaneLedger(db: D1Database, bell: OutboxBell = () => {}) {
  return {
    /**
     * Up to `maxKeys` lane keys from `fromKey` on, each with its first rows: one row a lane is read to find the next
     * (`select distinct` would walk the whole lane), whatever waits behind. Of a key of which something was under way before it
     * was one, that comes first: nothing goes before it has ended. delivery_lane.
     */
    async loadLane(
      tenantId: string,
      endpointId: string,
      fromKey: string,
      maxKeys: number,
      rowsPerKey: number,
      now: number,
      beforeKey = BEHIND_ALL_KEYS,
    ): Promise<LaneView> {
      const [settings, rows, ofEndpoints] = await db.batch<Row>([
        selectSettings(db, tenantId, endpointId),
        db
          .prepare(
            `with recursive head (lane_key, n) as (
               select (select lane_key from delivery where endpoint_id = ?2 and ${OPEN_IN_LANE} and lane_key >= ?3
                       and lane_key < ?7 order by lane_key limit 1), 1
               union all
               select (select lane_key from delivery where endpoint_id = ?2 and ${OPEN_IN_LANE}
                       and lane_key > head.lane_key and lane_key < ?7 order by lane_key limit 1), n + 1
               from head where head.lane_key is not null and n < ?4),
             first (lane_key, lane_position) as materialized (
               select lane_key, (select min(x.lane_position) from delivery x where x.endpoint_id = ?2
                 and x.lane_key = head.lane_key and x.terminal_at is null and x.lane_key is not null)
               from head where lane_key is not null),
             h (lane_key, lane_position, blocked) as materialized (
               select lane_key, iif(not ${maybeInFlightBefore("lane_position")}, lane_position, coalesce((
                 select min(x.lane_position) from delivery x where ${inFlightBefore("?2", "first.lane_key")}), lane_position)),
                 exists (select 1 from ${standingBlocks("?6")} where b.endpoint_id = ?2 and b.lane_key = first.lane_key)
               from first)
             select ${LOADED_COLUMNS}, h.blocked
             from h
             cross join delivery d on d.endpoint_id = ?2 and d.lane_key = h.lane_key and d.terminal_at is null
               and d.lane_key is not null and d.lane_position >= h.lane_position and d.lane_position < h.lane_position + ?5
             ${LOADED_JOINS}
             where d.tenant_id = ?1
             order by d.lane_key, d.lane_position`,
          )
          .bind(tenantId, endpointId, fromKey, maxKeys, rowsPerKey, now, beforeKey),
        selectOfEndpoints(db, JSON.stringify([[tenantId, endpointId]])),
      ]);
      const byKey = Map.groupBy(rows!.results, (row) => row["lane_key"] as string);
      const lanes = [...byKey].map(([laneKey, ofKey]) => ({
        laneKey,
        blocked: ofKey[0]!["blocked"] === 1,
        deliveries: ofKey.map((row) => toLoadedDelivery(row, ofEndpoints!.results)),
      }));
      return {
        settings: settings!.results[0] ? toSettings(settings!.results[0]) : null,
        lanes,
        hasMore: lanes.length === maxKeys,
        region: rows!.meta.served_by_region ?? null,
      };
    },

    /** How much is open in the lane; `limit` where it is more. delivery_lane. */
    async countOpen(tenantId: string, endpointId: string, limit: number): Promise<number> {
      const open = `select 1 from delivery where endpoint_id = ?2 and ${OPEN_IN_LANE} and +tenant_id = ?1 limit ?3`;
      const statement = db.prepare(`select count(*) as n from (${open})`).bind(tenantId, endpointId, limit);
      return (await statement.first<number>("n"))!;
    },

    /** How the lane is to be run, and no more. Primary keys. */
    async loadSettings(tenantId: string, endpointId: string): Promise<LaneSettings | null> {
      const row = await selectSettings(db, tenantId, endpointId).first<Row>();
      return row && toSettings(row);
    },

    /**
     * What is under way, whoever made its claim: of these lane keys, or of all. All of them is a walk through the whole lane,
     * for an object that has just taken over or whose endpoint has been changed; of some, no row is read behind what may be
     * under way. delivery_lane.
     */
    async listInFlight(
      tenantId: string,
      endpointId: string,
      laneKeys: string[] | null,
    ): Promise<{ laneKey: string; lockedUntil: number }[]> {
      const ofAll = `delivery d where d.endpoint_id = ?2 and d.terminal_at is null and d.lane_key is not null and ?3 is null`;
      const ofSome = `(select value as lane_key, (select min(x.lane_position) from delivery x where x.endpoint_id = ?2
            and x.lane_key = value and x.terminal_at is null and x.lane_key is not null) as first from json_each(?3)) h
          cross join delivery d on d.endpoint_id = ?2 and d.lane_key = h.lane_key and d.terminal_at is null
            and d.lane_key is not null and d.lane_position <= ${lastOfInFlight("h.first")}
          where true`;
      const { results } = await db
        .prepare(
          `select d.lane_key, d.locked_until from ${laneKeys === null ? ofAll : ofSome}
             and d.status = 'processing' and +d.tenant_id = ?1`,
        )
        .bind(tenantId, endpointId, laneKeys && JSON.stringify(laneKeys))
        .all<{ lane_key: string; locked_until: number }>();
      return results.map((row) => ({ laneKey: row.lane_key, lockedUntil: row.locked_until }));
    },

    /** Claims a head of a lane; false when the ledger does not agree that it is one that may be attempted now. */
    async claimHead(claim: Claim, generation: number, now: number): Promise<boolean> {
      const [claimed] = await db.batch<Row>([claimHead(db, claim, generation, now), openAttempt(db, claim, now)]);
      return claimed!.results.length > 0;
    },

    /**
     * Closes an attempt and claims the head behind it, in one batch: one round trip a delivery while all goes well. The
     * claim proves itself, so it fails where the close has left its delivery at the head.
     */
    async closeAndClaim(closing: Closing, claim: Claim, generation: number, now: number): Promise<boolean> {
      const statements = closingStatements(db, closing);
      const results = await db.batch<Row>([
        ...statements,
        claimHead(db, claim, generation, now),
        openAttempt(db, claim, now),
      ]);
      ringFor(bell, results);
      return results[statements.length]!.results.length > 0;
    },

    /**
     * Ends a pending head that will not be attempted any more, by what its endpoint said: not when it says something else by
     * now. Blocks its lane where the endpoint asks for it. Says whether it has ended by this.
     */
    async endHead(
      ref: TenantDeliveryRef & { endpoint: { revision: number } },
      end: { status: "failed" | "expired" | "dead_letter"; finalOutcome: string },
      now: number,
    ): Promise<boolean> {
      const key = [ref.tenantId, ref.eventId, ref.endpointId, ref.replayNo];
      const death = { finalOutcome: end.finalOutcome, at: now, attempt: null };
      const results = await db.batch([
        ...(end.status === "dead_letter" ? [raiseDeadLetter(db, ref, death, HEAD_ENDS, ref.endpoint.revision)] : []),
        db
          .prepare(
            `update delivery set status = ?5, final_outcome = ?6, terminal_at = ?7, next_attempt_at = null,
               hold_until = null, last_error_class = iif(?6 = 'destination_blocked', 'blocked_destination', last_error_class)
             where ${KEY} and status = 'pending' and exists (
               select 1 from endpoint e where e.tenant_id = ?1 and e.id = ?3 and e.revision = ?8)`,
          )
          .bind(...key, end.status, end.finalOutcome, now, ref.endpoint.revision),
        blockLane(db, ref, now),
      ]);
      ringFor(bell, results);
      return results.at(-2)!.meta.changes > 0;
    },
  };
}

/** Rows `x` of a lane key that were in flight already when it became one. Most lanes have none. */
const inFlightBefore = (endpointId: string, laneKey: string) => `x.endpoint_id = ${endpointId}
  and x.lane_key = ${laneKey} and x.terminal_at is null and x.lane_key is not null and ${maybeInFlightBefore("x.lane_position")}
  and x.status = 'processing'`;

/**
 * Proves, besides what every claim does, that this is the head (rows in flight count), that nothing else of its lane is in
 * flight from before it was one, and that it is not blocked. So two objects of one lane, or one and a watchdog, may cost time
 * and never order.
 */
function claimHead(db: D1Database, claim: Claim, generation: number, now: number): D1PreparedStatement {
  return db
    .prepare(
      `update delivery set status = 'processing', token = ?5, attempt_count = ?6, last_attempt_at = ?7,
         locked_until = ?8, next_attempt_at = ?8, scheduled_at = coalesce(scheduled_at, ?7)
       where ${KEY} and (token = ?5 or (
         status = 'pending' and lane_key is not null and attempt_count = ?6 - 1 and next_attempt_at <= ?7
         and lane_position = (
           select min(x.lane_position) from delivery x
           where x.endpoint_id = ?3 and x.lane_key = delivery.lane_key and x.terminal_at is null
             and x.lane_key is not null)
         and not exists (select 1 from delivery x where ${inFlightBefore("?3", "delivery.lane_key")})
         and not exists (
           select 1 from ${standingBlocks("?7")} where b.endpoint_id = ?3 and b.lane_key = delivery.lane_key)
         and exists (
           select 1 from endpoint e cross join tenant t on t.id = e.tenant_id and t.status = 'active'
           where e.tenant_id = ?1 and e.id = ?3 and e.revision = ?9 and e.route = 'lane' and e.lane_generation = ?10
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
      generation,
    );
}
