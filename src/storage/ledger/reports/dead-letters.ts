import { parseExample } from "./example.ts";

type Row = Record<string, any>;

/** Dead letters that one call looks at, those that were replayed or have expired among them. */
export const MAX_DEAD_LETTERS = 250_000;
const MAX_GROUPS = 1_000;

/** delivery_ended alone, newest first until the limit: it holds all that is asked for. */
const COUNT_DEAD_LETTERS = `
  with walked as (
    select subscription_id, endpoint_id, final_outcome, terminal_at, event_id, replay_no,
      replayed_as is null and expires_at > ?3 as is_open
    from delivery
    where tenant_id = ?1 and status = 'dead_letter' and terminal_at >= ?2 and terminal_at is not null and status <> 'succeeded'
    order by terminal_at desc limit ?4),
  grouped as materialized (
    select subscription_id, endpoint_id, final_outcome, count(*) as looked_at, min(terminal_at) as looked_from,
      sum(is_open) as deliveries, min(iif(is_open, terminal_at, null)) as oldest_at,
      max(iif(is_open, terminal_at, null)) as newest_at,
      max(iif(is_open, printf('%015d %s %05d', terminal_at, event_id, replay_no), null)) as example
    from walked group by subscription_id, endpoint_id, final_outcome),
  cut as (select iif(sum(looked_at) = ?4, min(looked_from) + 1, null) as since from grouped)
  select cut.since, g.*, count(g.example) over () as groups from cut left join grouped g on g.deliveries > 0
  order by g.deliveries desc, g.subscription_id, g.final_outcome limit ${MAX_GROUPS}`;

export function createDeadLettersReport(db: D1Database, maxDeadLetters = MAX_DEAD_LETTERS) {
  return {
    async countDeadLetters(tenantId: string, from: number | null, now: number) {
      const { results } = await db
        .prepare(COUNT_DEAD_LETTERS)
        .bind(tenantId, from ?? 0, now, maxDeadLetters)
        .all<Row>();
      return {
        completeFrom: (results[0]!["since"] as number | null) ?? from,
        groups: results[0]!["groups"] as number,
        data: results
          .filter((row) => row["example"] !== null)
          .map((row) => ({
            subscriptionId: row["subscription_id"],
            endpointId: row["endpoint_id"],
            finalOutcome: row["final_outcome"],
            deliveries: row["deliveries"],
            oldestAt: row["oldest_at"],
            newestAt: row["newest_at"],
            example: parseExample(row["example"], row["endpoint_id"]),
          })),
      };
    },
  };
}
