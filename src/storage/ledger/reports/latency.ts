import { firstEventIdAt } from "../../../core/ids.ts";
import { measuredColumns, measuredFrom, toPercentiles } from "./percentiles.ts";
import { completeFromOf, DELIVERIES_WALKED, EVENTS_WALKED, IS_NO_TEST, seenSince } from "./walk.ts";

type Row = Record<string, any>;

/** Events that one call looks at, and deliveries; of each of these its event and its attempts. */
export const MAX_LATENCIES = 30_000;
const MAX_GROUPS = 1_000;

const OF_DELIVERY =
  "a.tenant_id = ?1 and a.event_id = d.event_id and a.endpoint_id = d.endpoint_id and a.replay_no = 0";

/**
 * Everything by primary keys. Replays are left out, since how late they are says when somebody asked for them. An event that is not
 * dispatched owes deliveries that are not on record yet.
 */
const measureBy = (by: "source" | "endpoint") => `
  with ${EVENTS_WALKED}, ${DELIVERIES_WALKED},
  ${seenSince(["events_walked", "id"], ["deliveries_walked", "event_id"])},
  timed as materialized (
    select ${by === "source" ? "e.source_id" : "d.endpoint_id"} as grp, e.id as event_id, e.occurred_at, e.relayed_at,
      d.created_at, d.scheduled_at, d.terminal_at,
      (select a.requested_at from attempt a where ${OF_DELIVERY} and a.attempt_number = 1) as requested_at,
      (select min(a.responded_at) from attempt a where ${OF_DELIVERY} and a.outcome_class = 'success') as delivered_at
    from cut cross join deliveries_walked d cross join event e on e.tenant_id = ?1 and e.id = d.event_id
    where d.event_id >= cut.since and +d.replay_no = 0 and d.expires_at > ?3 and ${IS_NO_TEST}),
  relayed as (${
    by === "source"
      ? `select source_id as grp, relayed_at - occurred_at as n from cut cross join events_walked
    where id >= since and expires_at > ?3 and type <> 'hooklane.test'`
      : "select grp, relayed_at - occurred_at as n from timed"
  }),
  value (grp, measure, n) as (
    select grp, 0, delivered_at - occurred_at from timed where delivered_at is not null
    union all select grp, 1, n from relayed
    union all select grp, 2, requested_at - relayed_at from timed where requested_at is not null
    union all select grp, 3, scheduled_at - created_at from timed where scheduled_at is not null
    union all select grp, 4, requested_at - scheduled_at from timed where requested_at is not null and scheduled_at is not null),
  ${measuredFrom(5)},
  of_events as (select grp, count(*) as events from relayed group by grp),
  of_deliveries as (
    select grp, count(*) as deliveries, count(delivered_at) as delivered,
      sum(delivered_at is null and terminal_at is null) as open
    from timed group by grp),
  undelivered as (
    select grp, count(*) as undelivered_events from (
      select grp, event_id from timed where delivered_at is null${
        by === "source"
          ? `
      union
      select source_id, id from cut cross join events_walked where dispatched_at is null and id >= since and expires_at > ?3`
          : ""
      })
    group by grp),
  report as (
    select grp, events, coalesce(deliveries, 0) as deliveries, coalesce(delivered, 0) as delivered, coalesce(open, 0) as open,
      coalesce(undelivered_events, 0) as undelivered_events, ${measuredColumns(5)}
    from of_events left join of_deliveries using (grp) left join undelivered using (grp) left join measured using (grp))
  select cut.since, r.*, ${by === "source" ? "(select name from source s where s.tenant_id = ?1 and s.id = r.grp)" : "null"} as name,
    count(r.grp) over () as groups
  from cut left join report r order by r.events desc, r.deliveries desc, r.grp limit ${MAX_GROUPS}`;

const STATEMENTS = { source: measureBy("source"), endpoint: measureBy("endpoint") };

export function createLatencyReport(db: D1Database, maxLatencies = MAX_LATENCIES) {
  return {
    async measureLatencies(tenantId: string, by: "source" | "endpoint", from: number, now: number) {
      const { results } = await db
        .prepare(STATEMENTS[by])
        .bind(tenantId, firstEventIdAt(from), now, maxLatencies)
        .all<Row>();
      return {
        completeFrom: completeFromOf(results[0]!["since"], from),
        groups: results[0]!["groups"] as number,
        data: results
          .filter((row) => row["grp"] !== null)
          .map((row) => ({
            sourceId: by === "source" ? (row["grp"] as string) : null,
            sourceName: row["name"] as string | null,
            endpointId: by === "endpoint" ? (row["grp"] as string) : null,
            events: row["events"] as number,
            undeliveredEvents: row["undelivered_events"] as number,
            deliveries: row["deliveries"] as number,
            delivered: row["delivered"] as number,
            open: row["open"] as number,
            occurredToDelivered: toPercentiles(row, 0),
            occurredToRelayed: toPercentiles(row, 1),
            relayedToFirstRequest: toPercentiles(row, 2),
            limitsWait: toPercentiles(row, 3),
            relayLag: toPercentiles(row, 4),
          })),
      };
    },
  };
}
