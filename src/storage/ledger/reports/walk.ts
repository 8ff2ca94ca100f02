import { eventIdTimeMs } from "../../../core/ids.ts";

/**
 * The newest rows of a tenant's window, by primary key: event ids begin with their time. In all statements ?1 is the tenant, ?2 the
 * first event id of the window, ?3 now, ?4 how many rows are looked at; expired ones, replays and test sends are looked at too,
 * so that the work is bounded, and left out afterwards.
 */
export const EVENTS_WALKED = `events_walked as materialized (
  select id, source_id, type, schema_version, variants, occurred_at, relayed_at, dispatched_at, expires_at from event
  where tenant_id = ?1 and id >= ?2 order by id desc limit ?4)`;

export const DELIVERIES_WALKED = `deliveries_walked as materialized (
  select event_id, endpoint_id, replay_no, subscription_id, status, terminal_at, created_at, scheduled_at, filter_match_ms,
    filter_match_steps, expires_at from delivery
  where tenant_id = ?1 and event_id >= ?2 order by event_id desc, endpoint_id desc, replay_no desc limit ?4)`;

/** A test send's delivery carries its endpoint's own subscription (core/test-event); replays of one do too. */
export const IS_NO_TEST = "substr(d.subscription_id, 5) <> substr(d.endpoint_id, 4)";

/**
 * From which event on walks have seen everything: from the window's beginning, or where one stopped at its limit from the next
 * millisecond on, since of that one there may be more.
 */
export function seenSince(...walks: [table: string, eventId: string][]): string {
  const cuts = walks.map(
    ([table, id]) => `(select iif(count(*) = ?4, substr(min(${id}), 1, 14) || '~', '') from ${table})`,
  );
  return `cut (since) as materialized (select max(?2, '', ${cuts.join(", ")}))`;
}

/** What `since` says as a time: `from`, unless a walk stopped. */
export function completeFromOf(since: string, from: number): number {
  return since.endsWith("~") ? eventIdTimeMs(since) + 1 : from;
}
