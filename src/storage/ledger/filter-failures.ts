import type { SkippedSubscription } from "../../core/match.ts";

/** A filter that failed, and an event that it failed on. */
export type FailedFilter = SkippedSubscription & { eventId: string };

/** A filter that fails on every event costs its subscription a row an hour, not one an event. */
const NOTED_AGAIN_AFTER_MS = 3_600_000;
/** A bound parameter may be 2 MB, and one of them takes about 100 bytes. */
const FAILURES_PER_STATEMENT = 5_000;

/**
 * Notes on subscriptions that their filter fails, in the commit of the events it failed on, and only with it: of an event whose
 * key was taken nothing is noted. Primary keys; rows are read for each that failed, and written where the note is new.
 */
export function noteFilterFailures(
  db: D1Database,
  tenantId: string,
  revision: number,
  failed: FailedFilter[],
  now: number,
): D1PreparedStatement[] {
  const statements: D1PreparedStatement[] = [];
  for (let i = 0; i < failed.length; i += FAILURES_PER_STATEMENT) {
    const rows = failed
      .slice(i, i + FAILURES_PER_STATEMENT)
      .map(({ subscriptionId, reason, eventId }) => [subscriptionId, reason, eventId]);
    statements.push(
      db
        .prepare(
          // An upsert that always meets its row: an update from a list has the planner walk all subscriptions for each of them.
          `insert into subscription (tenant_id, id, endpoint_id, event_type_pattern, created_at, filter_failed_at,
             filter_failed_reason, filter_failed_event_id)
           select s.tenant_id, s.id, s.endpoint_id, s.event_type_pattern, s.created_at, ?4, j.value ->> 1, e.id
           from tenant t cross join json_each(?2) j
           cross join event e on e.tenant_id = t.id and e.id = j.value ->> 2
           cross join subscription s on s.tenant_id = t.id and s.id = j.value ->> 0
           where t.id = ?1 and t.revision = ?3 and (s.filter_failed_at is null or s.filter_failed_at <= ?5)
           on conflict (tenant_id, id) do update set filter_failed_at = excluded.filter_failed_at,
             filter_failed_reason = excluded.filter_failed_reason,
             filter_failed_event_id = excluded.filter_failed_event_id`,
        )
        .bind(tenantId, JSON.stringify(rows), revision, now, now - NOTED_AGAIN_AFTER_MS),
    );
  }
  return statements;
}
