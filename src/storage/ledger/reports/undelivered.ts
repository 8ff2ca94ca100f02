import { parseExample } from "./example.ts";

type Row = Record<string, any>;

/** Rows that one call looks at: of each of the two states of what queues do, and of all lanes of the tenant together. */
const MAX_LOOKED_AT = 100_000;
const MAX_ENDPOINTS = 20_000;
const MAX_GROUPS = 1_000;

const IN_LANE = "d.endpoint_id = e.id and d.terminal_at is null and d.lane_key is not null";
const OLDEST = "min(printf('%015d %s %05d', created_at, event_id, replay_no))";

/** Work of queues, whosever it is, since no index has it by tenant; soonest due first. Literals, as the index wants them. */
const dueAs = (status: string) => `select * from (
  select tenant_id, endpoint_id, event_id, replay_no, created_at, expires_at from delivery
  where terminal_at is null and lane_key is null and status = '${status}' order by next_attempt_at limit ?3)`;

/**
 * delivery_due as far as the limit goes; and of each of the tenant's endpoints (endpoint_living) what is in its lane
 * (delivery_lane), as far as its share of the limit goes. As JSON, since a join would not stop at a limit for each of them.
 */
const LIST_UNDELIVERED = `
  with pending as materialized (${dueAs("pending")}),
  processing as materialized (${dueAs("processing")}),
  living as materialized (
    select id from endpoint where tenant_id = ?1 and deleted_at is null order by created_at desc limit ${MAX_ENDPOINTS}),
  lane as materialized (select e.id from living e where exists (select 1 from delivery d where ${IN_LANE})),
  share as materialized (select max(1, cast(?3 as integer) / max(1, count(*))) as n from lane),
  found (endpoint_id, looked_at, depth, oldest, is_whole) as materialized (
    select endpoint_id, count(*), count(*), ${OLDEST},
      (select count(*) from pending) < ?3 and (select count(*) from processing) < ?3
    from (select * from pending union all select * from processing)
    where tenant_id = ?1 and expires_at > ?2 group by endpoint_id
    union all
    select e.id, j.value ->> 0, j.value ->> 1, j.value ->> 2, j.value ->> 0 < (select n from share)
    from lane e cross join json_each((
      select json_array(json_array(count(*), count(iif(expires_at > ?2, 1, null)),
        min(iif(expires_at > ?2, printf('%015d %s %05d', created_at, event_id, replay_no), null))))
      from (select d.* from delivery d where ${IN_LANE} and +d.tenant_id = ?1
            order by d.lane_key, d.lane_position limit (select n from share)))) j),
  grouped as (
    select endpoint_id, iif(min(is_whole), sum(depth), null) as depth, min(oldest) as oldest
    from found group by endpoint_id having min(oldest) is not null)
  select g.*, count(g.oldest) over () as groups,
    (select count(*) from pending) < ?3 and (select count(*) from processing) < ?3
      and (select count(*) from living) < ${MAX_ENDPOINTS} and not exists (select 1 from found where not is_whole) as complete
  from (select 1) left join grouped g order by substr(g.oldest, 1, 15), g.endpoint_id limit ${MAX_GROUPS}`;

export function createUndeliveredReport(db: D1Database, maxLookedAt = MAX_LOOKED_AT) {
  return {
    async listUndelivered(tenantId: string, now: number) {
      const { results } = await db.prepare(LIST_UNDELIVERED).bind(tenantId, now, maxLookedAt).all<Row>();
      return {
        groups: results[0]!["groups"] as number,
        complete: results[0]!["complete"] === 1,
        data: results
          .filter((row) => row["oldest"] !== null)
          .map((row) => ({
            endpointId: row["endpoint_id"],
            depth: row["depth"],
            oldestAt: Number((row["oldest"] as string).slice(0, 15)),
            oldest: parseExample(row["oldest"], row["endpoint_id"]),
          })),
      };
    },
  };
}
