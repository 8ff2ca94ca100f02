import type { EventChoice, ReplayPart } from "../../../core/replay.ts";
import { keepRetryPolicy, type RetryPolicyRow } from "../../config/retry-policies.ts";
import { IS_NEXT_STEP, MAX_REPLAY_NO, REPLAY_LANE_KEY, UNSENDABLE } from "./replay-chosen.ts";

/** The configuration is that of revision ?7. */
const IS_FRESH = `${IS_NEXT_STEP} and (select revision from tenant where id = ?1) = ?7`;

/** What was chosen (?5, `[[event id, version, filter steps], …]`) as it is now, for subscription ?8. */
const CHOSEN = `json_each(?5) j
  left join event e on e.tenant_id = ?1 and e.id = j.value ->> 0
  left join endpoint ep on ep.tenant_id = ?1 and ep.id = ?3
  left join subscription s on s.tenant_id = ?1 and s.id = ?8`;
const OF_EVENT = "x.tenant_id = ?1 and x.event_id = j.value ->> 0 and x.endpoint_id = ?3";
const LAST_NO = `(select max(x.replay_no) from delivery x where ${OF_EVENT})`;

/** Why one of CHOSEN is not delivered at ?6; null where it is. ?9 says whether it may be once more. */
const SKIPPED_FOR = `case
  when e.id is null or e.expires_at <= ?6 then 'expired'
  ${UNSENDABLE}
  when e.dispatched_at is null then 'still_open'
  when not ?9 and ${LAST_NO} is not null then 'already_replayed'
  when exists (select 1 from delivery x where ${OF_EVENT} and x.terminal_at is null) then 'still_open'
  when ${LAST_NO} >= ${MAX_REPLAY_NO} then 'replayed_too_often' end`;
const TAIL = `max(0, coalesce((select max(x.lane_position) from delivery x where x.endpoint_id = n.endpoint_id
  and x.lane_key = n.lane_key and x.terminal_at is null and x.lane_key is not null), 0))`;

/**
 * The statements of a step of a back-fill. A delivery that is filled in has a number like a replay, though there may be nothing that
 * it repeats: it is younger than its event, and no part of what its publish was answered.
 */
export function insertBackfilled(
  db: D1Database,
  of: ReplayPart,
  choice: EventChoice,
  policy: RetryPolicyRow | null,
  now: number,
) {
  const rows = choice.chosen.map(({ eventId, schemaVersion, filterSteps }) => [eventId, schemaVersion, filterSteps]);
  const bind = (sql: string, ...more: (string | number | null)[]) =>
    db
      .prepare(sql)
      .bind(
        of.tenantId,
        of.replayId,
        of.endpointId,
        of.step,
        JSON.stringify(rows),
        now,
        choice.revision,
        of.toSubscriptionId,
        of.includeReplayed ? 1 : 0,
        ...more,
      );
  const keepPolicy = keepRetryPolicy(db, of.tenantId, policy);
  const count = bind(
    `update replay set looked_at = looked_at + ?10, found = found + ?11,
       replayed = replayed + (select count(*) from ${CHOSEN} where ${SKIPPED_FOR} is null),
       skipped = (select json_group_object(reason, n) from (
         select reason, sum(n) as n from (
           select key as reason, value as n from json_each(replay.skipped)
           union all select ${SKIPPED_FOR}, 1 from ${CHOSEN}
           union all select key, value from json_each(?12))
         where reason is not null group by reason))
     where tenant_id = ?1 and id = ?2 and ${IS_FRESH}`,
    choice.lookedAt,
    choice.found,
    JSON.stringify(choice.skipped),
  );
  const insert = bind(
    `insert into delivery (tenant_id, event_id, endpoint_id, replay_no, subscription_id, status, retry_policy_id, created_at,
       scheduled_at, next_attempt_at, replay_of, relay_region, expires_at, lane_key, lane_position, schema_version,
       filter_match_steps)
     select tenant_id, event_id, endpoint_id, coalesce(last_no, 0) + 1, subscription_id, 'pending', policy_id, ?6,
       iif(lane_key is null, ?6, null), ?6, last_no, relay_region, expires_at, lane_key,
       iif(lane_key is null, null, ${TAIL} + row_number() over (partition by lane_key order by place)), version, filter_steps
     from (
       select j.key as place, e.tenant_id, e.id as event_id, ep.id as endpoint_id, ${LAST_NO} as last_no,
         s.id as subscription_id, coalesce(?10, s.retry_policy_id, ep.retry_policy_id) as policy_id, e.relay_region, e.expires_at,
         ${REPLAY_LANE_KEY} as lane_key, j.value ->> 1 as version, j.value ->> 2 as filter_steps
       from ${CHOSEN}
       where ${SKIPPED_FOR} is null and ${IS_FRESH}) n
     where true
     returning event_id, replay_no`,
    policy?.id ?? null,
  );
  const mark = db
    .prepare(
      `update delivery set replayed_as = (
         select max(x.replay_no) from delivery x where x.tenant_id = ?1 and x.event_id = delivery.event_id and x.endpoint_id = ?2)
       where (tenant_id, event_id, endpoint_id, replay_no) in (
         select r.tenant_id, r.event_id, r.endpoint_id, r.replay_of from json_each(?3) j
         cross join delivery r on r.tenant_id = ?1 and r.event_id = j.value ->> 0 and r.endpoint_id = ?2
         where r.created_at = ?4 and r.terminal_at is null and r.replay_of is not null) and terminal_at is not null`,
    )
    .bind(of.tenantId, of.endpointId, JSON.stringify(rows), now);
  return { statements: [...keepPolicy, count, insert, mark], inserted: keepPolicy.length + 1 };
}
