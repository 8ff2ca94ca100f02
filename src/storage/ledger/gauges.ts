type Row = Record<string, any>;

const OPEN_IN_LANE = "terminal_at is null and lane_key is not null";
const DEAD = "status = 'dead_letter' and status <> 'succeeded' and terminal_at is not null";

/** What one look at a shard reads at most: tenants with dead letters, dead letters, lanes, heads of lanes. */
const MAX_TENANTS = 1_000;
const MAX_DEAD_LETTERS = 10_000;
const MAX_LANES = 5_000;
const MAX_HEADS = 2_000;

/** A count, or where looking ended before the end, how many there are at least. */
interface Bounded {
  count: number;
  isComplete: boolean;
}

/** How a shard's ledger stands. A scrape reads it, so each statement reads a bounded number of rows whatever there is. */
export function createGaugeLedger(db: D1Database, bounds = { MAX_TENANTS, MAX_DEAD_LETTERS, MAX_LANES, MAX_HEADS }) {
  return {
    async readGauges(now: number) {
      const [dead, lanes, heads, due] = await db.batch<Row>([
        deadLetters(db, bounds.MAX_TENANTS, bounds.MAX_DEAD_LETTERS, now),
        openLanes(db, bounds.MAX_LANES),
        laneHeads(db, bounds.MAX_HEADS),
        oldestDue(db, now),
      ]);
      const { tenants, looked, open } = dead!.results[0]!;
      const headCount = bounded(heads!.results[0]!["n"], bounds.MAX_HEADS);
      return {
        openDeadLetters: {
          count: open as number,
          isComplete: tenants <= bounds.MAX_TENANTS && looked <= bounds.MAX_DEAD_LETTERS,
        },
        openLanes: bounded(lanes!.results[0]!["n"], bounds.MAX_LANES),
        laneHeads: headCount,
        /** Of lanes that nothing holds; null when there is none, or not all were looked at. */
        oldestHeadAt: headCount.isComplete ? (heads!.results[0]!["oldest_at"] as number | null) : null,
        oldestDueAt: due!.results[0]!["at"] as number | null,
      };
    },
  };
}

function bounded(count: number, limit: number): Bounded {
  return { count: Math.min(count, limit), isComplete: count <= limit };
}

/** delivery_ended alone holds what is asked of each, tenant by tenant. */
function deadLetters(db: D1Database, maxTenants: number, maxRows: number, now: number): D1PreparedStatement {
  const next = (after: string) =>
    `select min(tenant_id) from delivery indexed by delivery_ended
     where terminal_at is not null and status <> 'succeeded' and tenant_id > ${after}`;
  return db
    .prepare(
      `with recursive t (id, n) as (
         select (${next("''")}), 1
         union all select (${next("t.id")}), n + 1 from t where t.id is not null and n <= ?1),
       dead (is_open) as materialized (
         select replayed_as is null and expires_at > ?3 from (select id from t where id is not null limit ?1)
         cross join delivery indexed by delivery_ended on tenant_id = id and ${DEAD} limit ?2 + 1)
       select (select count(id) from t) as tenants, count(*) as looked, coalesce(sum(is_open), 0) as open from dead`,
    )
    .bind(maxTenants, maxRows, now);
}

/** Endpoints with open work in a lane, by a loose scan: one row each. delivery_lane. */
function openLanes(db: D1Database, limit: number): D1PreparedStatement {
  const next = (after: string) =>
    `select min(endpoint_id) from delivery where ${OPEN_IN_LANE} and endpoint_id > ${after}`;
  return db
    .prepare(
      `with recursive lane (endpoint_id, n) as (
         select (${next("''")}), 1
         union all select (${next("lane.endpoint_id")}), n + 1 from lane where lane.endpoint_id is not null and n <= ?1)
       select count(endpoint_id) as n from lane`,
    )
    .bind(limit);
}

/** First rows of lane keys, by a loose scan over endpoints and keys. delivery_lane, then primary keys. */
function laneHeads(db: D1Database, limit: number): D1PreparedStatement {
  const nextEndpoint = (after: string) =>
    `(select min(endpoint_id) from delivery where ${OPEN_IN_LANE} and endpoint_id > ${after})`;
  const nextKey = (endpoint: string, after: string) =>
    `(select min(lane_key) from delivery where ${OPEN_IN_LANE} and endpoint_id = ${endpoint} and lane_key ${after})`;
  const sameEndpoint = nextKey("head.endpoint_id", "> head.lane_key");
  return db
    .prepare(
      `with recursive head (endpoint_id, lane_key, n) as (
         select e, ${nextKey("e", ">= ''")}, 1 from (select ${nextEndpoint("''")} as e)
         union all
         select iif(${sameEndpoint} is null, ${nextEndpoint("head.endpoint_id")}, head.endpoint_id),
           coalesce(${sameEndpoint}, ${nextKey(nextEndpoint("head.endpoint_id"), ">= ''")}), n + 1
         from head where head.endpoint_id is not null and n <= ?1),
       looked as materialized (select endpoint_id, lane_key from head where endpoint_id is not null limit ?1)
       select (select count(endpoint_id) from head) as n, (
         select min(d.created_at) from looked
         cross join delivery d on d.endpoint_id = looked.endpoint_id and d.lane_key = looked.lane_key
           and d.terminal_at is null and d.lane_key is not null and d.lane_position = (
             select min(x.lane_position) from delivery x where x.endpoint_id = looked.endpoint_id
               and x.lane_key = looked.lane_key and x.terminal_at is null and x.lane_key is not null)
         cross join endpoint ep on ep.tenant_id = d.tenant_id and ep.id = d.endpoint_id
         cross join tenant t on t.id = d.tenant_id
         where ep.paused_at is null and ep.disabled_at is null and ep.deleted_at is null and t.status = 'active'
       ) as oldest_at`,
    )
    .bind(limit);
}

/** Since when the first of what queues deliver is due. delivery_due. */
function oldestDue(db: D1Database, now: number): D1PreparedStatement {
  return db
    .prepare(
      `select min(next_attempt_at) as at from delivery
       where status = 'pending' and terminal_at is null and lane_key is null and next_attempt_at <= ?1`,
    )
    .bind(now);
}
