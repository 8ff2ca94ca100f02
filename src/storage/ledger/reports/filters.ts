import { firstEventIdAt } from "../../../core/ids.ts";
import { measuredColumns, measuredFrom, toPercentiles } from "./percentiles.ts";
import { completeFromOf, DELIVERIES_WALKED, seenSince } from "./walk.ts";

type Row = Record<string, any>;

/** Deliveries that one call looks at. */
export const MAX_FILTERED = 100_000;
const MAX_GROUPS = 1_000;

/** By the primary key alone. Only first deliveries have the cost of their filter. */
const MEASURE_FILTERS = `
  with ${DELIVERIES_WALKED}, ${seenSince(["deliveries_walked", "event_id"])},
  filtered as materialized (
    select subscription_id as grp, endpoint_id, filter_match_steps as steps, filter_match_ms as ms
    from cut cross join deliveries_walked
    where event_id >= since and filter_match_steps is not null and expires_at > ?3),
  value (grp, measure, n) as (
    select grp, 0, steps from filtered union all select grp, 1, ms from filtered where ms is not null),
  ${measuredFrom(2)},
  most as (select grp, min(endpoint_id) as endpoint_id, max(steps) as max_steps, max(ms) as max_ms from filtered group by grp),
  report as (select grp, endpoint_id, max_steps, max_ms, ${measuredColumns(2)} from most left join measured using (grp))
  select cut.since, r.*, count(r.grp) over () as groups from cut left join report r
  order by r.p95_0 desc, r.max_steps desc, r.grp limit ${MAX_GROUPS}`;

export function createFiltersReport(db: D1Database, maxFiltered = MAX_FILTERED) {
  return {
    async measureFilters(tenantId: string, from: number, now: number) {
      const { results } = await db
        .prepare(MEASURE_FILTERS)
        .bind(tenantId, firstEventIdAt(from), now, maxFiltered)
        .all<Row>();
      return {
        completeFrom: completeFromOf(results[0]!["since"], from),
        groups: results[0]!["groups"] as number,
        data: results
          .filter((row) => row["grp"] !== null)
          .map((row) => ({
            subscriptionId: row["grp"] as string,
            endpointId: row["endpoint_id"] as string,
            steps: { ...toPercentiles(row, 0), max: row["max_steps"] as number | null },
            ms: { ...toPercentiles(row, 1), max: row["max_ms"] as number | null },
          })),
      };
    },
  };
}
