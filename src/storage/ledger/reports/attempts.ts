import { firstEventIdAt } from "../../../core/ids.ts";
import { measuredColumns, measuredFrom, toPercentiles } from "./percentiles.ts";

type Row = Record<string, any>;

/** Attempts that one call looks at by their events, and failed ones by their time; of each its event. */
export const MAX_ATTEMPTS = 50_000;
const MAX_GROUPS = 1_000;

const NEWEST_FIRST = "event_id desc, endpoint_id desc, replay_no desc, attempt_number desc";

/**
 * What failed is found by its time (attempt_failed), whatever it is an attempt of; what succeeded, or is open, by the events of the
 * window (primary key), since an index of successes would be a row more of every event. Then each event by its key.
 */
const countBy = (by: "worker_id" | "relay_region") => `
  with tried as materialized (
    select event_id, outcome_class, coalesce(${by}, '') as grp, latency_ms, requested_at from attempt
    where tenant_id = ?1 and event_id >= ?2 order by ${NEWEST_FIRST} limit ?4),
  failed as materialized (
    select requested_at, event_id, outcome_class, error_class, coalesce(${by}, '') as grp, latency_ms from attempt
    where tenant_id = ?1 and requested_at >= ?5 and outcome_class <> 'success' order by requested_at desc limit ?4),
  cut (since) as materialized (select max(?5,
    (select coalesce(max(e.relayed_at + 1), 0) from (select min(event_id) as id, count(*) as n from tried) last
     cross join event e on e.tenant_id = ?1 and e.id = last.id where last.n = ?4),
    (select iif(count(*) = ?4, min(requested_at) + 1, 0) from failed))),
  seen as materialized (
    select t.grp, iif(t.outcome_class is null, 'open', 'succeeded') as came_to, t.latency_ms, t.requested_at
    from cut cross join tried t cross join event e on e.tenant_id = ?1 and e.id = t.event_id
    where e.relayed_at >= cut.since and e.expires_at > ?3 and (t.outcome_class is null or t.outcome_class = 'success')
    union all
    select f.grp, iif(f.error_class in ('internal', 'abandoned'), 'relay_fault', f.outcome_class), f.latency_ms, f.requested_at
    from cut cross join failed f cross join event e on e.tenant_id = ?1 and e.id = f.event_id
    where f.requested_at >= cut.since and e.expires_at > ?3),
  value (grp, measure, n) as (select grp, 0, latency_ms from seen where latency_ms is not null),
  ${measuredFrom(1)},
  outcomes as (
    select grp, ${["succeeded", "transient", "rejected", "unreachable", "relay_fault", "open"]
      .map((outcome) => `sum(came_to = '${outcome}') as ${outcome}`)
      .join(", ")}, max(requested_at) as last_at
    from seen group by grp),
  report as (select grp, succeeded, transient, rejected, unreachable, relay_fault, open, last_at, ${measuredColumns(1)}
    from outcomes left join measured using (grp))
  select cut.since, r.*, count(r.grp) over () as groups from cut left join report r
  order by r.transient + r.rejected + r.unreachable + r.relay_fault desc, r.succeeded desc, r.grp limit ${MAX_GROUPS}`;

const STATEMENTS = { worker_id: countBy("worker_id"), relay_region: countBy("relay_region") };

export function createAttemptsReport(db: D1Database, maxAttempts = MAX_ATTEMPTS) {
  return {
    async countAttempts(tenantId: string, by: "worker_id" | "relay_region", from: number, now: number) {
      const { results } = await db
        .prepare(STATEMENTS[by])
        .bind(tenantId, firstEventIdAt(from), now, maxAttempts, from)
        .all<Row>();
      return {
        completeFrom: results[0]!["since"] as number,
        groups: results[0]!["groups"] as number,
        data: results
          .filter((row) => row["grp"] !== null)
          .map((row) => ({
            // A worker or a region that is not known.
            value: row["grp"] === "" ? null : (row["grp"] as string),
            succeeded: row["succeeded"] as number,
            transient: row["transient"] as number,
            rejected: row["rejected"] as number,
            unreachable: row["unreachable"] as number,
            relayFaults: row["relay_fault"] as number,
            open: row["open"] as number,
            lastAt: row["last_at"] as number,
            latency: toPercentiles(row, 0),
          })),
      };
    },
  };
}
