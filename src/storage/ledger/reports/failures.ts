import { parseExample } from "./example.ts";

type Row = Record<string, any>;

/** Failed attempts that one call looks at, and deliveries that ended in each of the three ways. */
export const MAX_FAILURES = 50_000;
const MAX_GROUPS = 1_000;

const ENDED = "terminal_at, event_id, endpoint_id, replay_no, subscription_id, final_outcome, expires_at";
/** The newest deliveries that ended so; literals, as the index wants them. */
const endedAs = (status: string) => `select * from (
  select ${ENDED} from delivery
  where tenant_id = ?1 and status = '${status}' and terminal_at >= ?2 and terminal_at is not null and status <> 'succeeded'
  order by terminal_at desc limit ?4)`;

/** From when on a walk that stops at a limit has seen everything. */
const seenFrom = (walk: string, time: string) =>
  `select iif(count(*) = ?4, min(${time}) + 1, ?2) as since from ${walk}`;

const OURS = "('internal', 'abandoned')";

/**
 * Newest first until a limit, so that the work is bounded: attempt_failed for what was tried, delivery_ended for what ended,
 * by each of its statuses. Then each delivery by its key, for its subscription. One that was tried and one that ended are the
 * same delivery, counted once in a class.
 */
const COUNT_FAILURES = `
  with tried as materialized (
    select requested_at, error_class, event_id, endpoint_id, replay_no from attempt
    where tenant_id = ?1 and requested_at >= ?2 and outcome_class <> 'success'
    order by requested_at desc limit ?4),
  failed as materialized (${endedAs("failed")}),
  dead as materialized (${endedAs("dead_letter")}),
  expired as materialized (${endedAs("expired")}),
  cut as materialized (
    select max(since) as since from (
      ${seenFrom("tried", "requested_at")} union all ${seenFrom("failed", "terminal_at")} union all
      ${seenFrom("dead", "terminal_at")} union all ${seenFrom("expired", "terminal_at")})),
  ended as (select * from failed union all select * from dead union all select * from expired),
  seen as (
    select d.subscription_id, t.endpoint_id, t.event_id, t.replay_no, t.error_class, null as final_outcome, 1 as attempts,
      0 as ended, t.requested_at as at
    from cut cross join tried t cross join delivery d on d.tenant_id = ?1 and d.event_id = t.event_id
      and d.endpoint_id = t.endpoint_id and d.replay_no = t.replay_no
    where t.requested_at >= cut.since and t.error_class not in ${OURS} and d.expires_at > ?3
    union all
    select e.subscription_id, e.endpoint_id, e.event_id, e.replay_no,
      iif(d.last_error_class in ${OURS}, null, d.last_error_class),
      iif(d.last_error_class is null or d.last_error_class in ${OURS}, e.final_outcome, null), 0, 1, e.terminal_at
    from cut cross join ended e cross join delivery d on d.tenant_id = ?1 and d.event_id = e.event_id
      and d.endpoint_id = e.endpoint_id and d.replay_no = e.replay_no
    where e.terminal_at >= cut.since and e.expires_at > ?3),
  one as (
    select subscription_id, endpoint_id, event_id, replay_no, error_class, final_outcome, sum(attempts) as attempts,
      max(ended) as ended, min(at) as first_at, max(at) as last_at
    from seen where substr(subscription_id, 5) <> substr(endpoint_id, 4) group by event_id, endpoint_id, replay_no, error_class, final_outcome),
  grouped as (
    select subscription_id, endpoint_id, error_class, final_outcome, count(*) as deliveries, sum(attempts) as attempts,
      sum(ended) as ended, min(first_at) as first_at, max(last_at) as last_at,
      max(printf('%015d %s %05d', last_at, event_id, replay_no)) as example
    from one group by subscription_id, endpoint_id, error_class, final_outcome)
  select cut.since, g.*, count(g.example) over () as groups from cut left join grouped g
  order by g.deliveries desc, g.attempts desc, g.subscription_id, g.error_class, g.final_outcome limit ${MAX_GROUPS}`;

export function createFailuresReport(db: D1Database, maxFailures = MAX_FAILURES) {
  return {
    async countFailures(tenantId: string, from: number, now: number) {
      const { results } = await db.prepare(COUNT_FAILURES).bind(tenantId, from, now, maxFailures).all<Row>();
      return {
        completeFrom: results[0]!["since"] as number,
        groups: results[0]!["groups"] as number,
        data: results
          .filter((row) => row["example"] !== null)
          .map((row) => ({
            subscriptionId: row["subscription_id"],
            endpointId: row["endpoint_id"],
            errorClass: row["error_class"],
            finalOutcome: row["final_outcome"],
            deliveries: row["deliveries"],
            attempts: row["attempts"],
            ended: row["ended"],
            firstAt: row["first_at"],
            lastAt: row["last_at"],
            example: parseExample(row["example"], row["endpoint_id"]),
          })),
      };
    },
  };
}
