import { firstEventIdAt } from "../../../core/ids.ts";
import { statusesOf, type ReplayFilter } from "../../../core/replay.ts";
import { TEST_EVENT_TYPE } from "../../../core/test-event.ts";

/** Behind the last event id there is. */
const BEHIND_ALL = "evt_~";

/**
 * Whether delivery `d` of event `e` is meant by a filter (JSON of a `ReplayFilter`) as of `startedAt`: what was made or ended
 * later is not, so that no replay takes what it made itself. Test sends never are. Expressions over SQL parameters.
 */
export function isMeant(filter: string, startedAt: string, includeReplayed: string): string {
  const equals = (column: string, name: string) => `coalesce(${filter} ->> '${name}', ${column}) is ${column}`;
  return `d.created_at <= ${startedAt} and d.terminal_at <= ${startedAt}
    and (${includeReplayed} or d.replayed_as is null)
    and ${equals("d.subscription_id", "subscriptionId")} and ${equals("d.last_error_class", "errorClass")}
    and d.created_at > coalesce(${filter} ->> 'createdAfter', -1)
    and d.created_at < coalesce(${filter} ->> 'createdBefore', d.created_at + 1)
    and ${equals("e.type", "eventType")} and ${equals("e.source_id", "sourceId")} and e.type <> '${TEST_EVENT_TYPE}'`;
}

/** A delivery is no older than its event. */
export function eventsBefore({ createdBefore }: ReplayFilter): string {
  return createdBefore === null ? BEHIND_ALL : firstEventIdAt(createdBefore);
}

/**
 * What can be replayed at endpoint `?2` of tenant `?1`, of the statuses of a filter, in order of event and replay number: events
 * behind `?3` and before `?4`. delivery_replayable, once for each status.
 */
export function replayableAt(filter: Pick<ReplayFilter, "status">, limit: number): string {
  const ofStatus = statusesOf(filter).map(
    (status) => `select * from (
      select event_id, endpoint_id, replay_no from delivery indexed by delivery_replayable
      where tenant_id = ?1 and endpoint_id = ?2 and status = '${status}' and terminal_at is not null
        and status <> 'succeeded' and event_id > ?3 and event_id < ?4
      order by event_id, replay_no limit ${limit})`,
  );
  return `select * from (${ofStatus.join(" union all ")}) order by event_id, replay_no limit ${limit}`;
}

/** The same at all endpoints of a tenant, one endpoint after the other; of every status, since each row looked at counts. */
export function replayableAnywhere(limit: number): string {
  return `select event_id, endpoint_id, replay_no from delivery indexed by delivery_replayable
    where tenant_id = ?1 and terminal_at is not null and status <> 'succeeded' limit ${limit}`;
}
