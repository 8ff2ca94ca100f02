import type { Choice, ReplayPart } from "../../../core/replay.ts";
import { keepRetryPolicy, type RetryPolicyRow } from "../../config/retry-policies.ts";
import { MAY_HAVE_AGE } from "../block.ts";
import { LANE_KEY, retryKey } from "../lane-key.ts";
import { inFront } from "../lane-position.ts";
import { REPLAYED_VERSION } from "../replayed-version.ts";

export const MAX_REPLAY_NO = 32_767;

/** Whether replay ?2 of tenant ?1 runs, and step ?4 of its part at endpoint ?3 has not been taken. Primary keys. */
export const IS_NEXT_STEP = `exists (
  select 1 from replay_part p cross join replay r on r.tenant_id = p.tenant_id and r.id = p.replay_id
  where p.tenant_id = ?1 and p.replay_id = ?2 and p.endpoint_id = ?3 and p.step = ?4 and r.state = 'running')`;

/** What was chosen (?5, `[[event id, replay number, [marked, …]], …]`) as it is now; what has been deleted has no `d`. */
const CHOSEN = `json_each(?5) j
  left join delivery d on d.tenant_id = ?1 and d.event_id = j.value ->> 0 and d.endpoint_id = ?3
    and d.replay_no = j.value ->> 1
  left join event e on e.tenant_id = d.tenant_id and e.id = d.event_id
  left join endpoint ep on ep.tenant_id = d.tenant_id and ep.id = d.endpoint_id
  left join subscription s on s.tenant_id = d.tenant_id and s.id = d.subscription_id`;
const OF_EVENT = "x.tenant_id = d.tenant_id and x.event_id = d.event_id and x.endpoint_id = d.endpoint_id";
const LAST_NO = `(select max(x.replay_no) from delivery x where ${OF_EVENT})`;

/** Why nothing can be made of event `e` for subscription `s` of endpoint `ep`, in a `case`. */
export const UNSENDABLE = `when e.payload_erased_at is not null then 'payload_erased'
  when ep.deleted_at is not null then 'endpoint_deleted'
  when ep.disabled_at is not null then 'endpoint_disabled'
  when s.deleted_at is not null then 'subscription_deleted'
  when s.disabled_at is not null then 'subscription_disabled'`;

/** Why one of CHOSEN is not replayed at ?6; null where it is. ?7 says whether it may be once more. */
const SKIPPED_FOR = `case
  when d.event_id is null or e.expires_at <= ?6 then 'expired'
  ${UNSENDABLE}
  when not ?7 and d.replayed_as is not null then 'already_replayed'
  when exists (select 1 from delivery x where ${OF_EVENT} and x.terminal_at is null) then 'still_open'
  when ${LAST_NO} >= ${MAX_REPLAY_NO} then 'replayed_too_often'
  when ${REPLAYED_VERSION} is not null then null
  when exists (select 1 from event_type x where x.tenant_id = e.tenant_id and x.name = e.type
    and x.schema_version = coalesce(s.schema_version, x.schema_version) and x.retired_at is not null)
    then 'version_retired'
  else 'version_not_published' end`;

/**
 * The lane of a replay: behind all first attempts where nothing orders it, else at the tail of its lane as any other; only that of
 * a blocked head takes its place.
 */
export const REPLAY_LANE_KEY = `iif(${LANE_KEY} = ' ' || e.id, ${retryKey("e.id")}, ${LANE_KEY})`;
const IS_BLOCKED_HEAD = `exists (select 1 from lane_block b where b.endpoint_id = d.endpoint_id
  and b.lane_key = ${LANE_KEY} and b.event_id = d.event_id and b.replay_no = d.replay_no)`;
const OPEN_IN_LANE =
  "x.endpoint_id = n.endpoint_id and x.lane_key = n.lane_key and x.terminal_at is null and x.lane_key is not null";

/** That delivery `d` is one of the chosen, and step ?4 has replayed it at ?6. */
const REPLAYED_NOW = `exists (select 1 from delivery r where r.tenant_id = ?1 and r.event_id = j.value ->> 0
  and r.endpoint_id = ?3 and r.replay_of = j.value ->> 1 and r.created_at = ?6 and r.terminal_at is null)`;

/**
 * The statements of a step that count and replay what was chosen, to be followed in the same batch by the one that takes the step.
 * Several statements see the same rows, so each comes to the same verdict on them. `inserted` is which of them gives back what was
 * made.
 */
export function replayChosen(
  db: D1Database,
  of: ReplayPart,
  choice: Choice,
  policy: RetryPolicyRow | null,
  now: number,
) {
  const { chosen, lookedAt, found } = choice;
  const sameEvent = found - chosen.length;
  const rows = JSON.stringify(chosen.map(({ eventId, replayNo, replayNos }) => [eventId, replayNo, replayNos]));
  const bind = (sql: string, ...more: (string | number | null)[]) =>
    db.prepare(sql).bind(of.tenantId, of.replayId, of.endpointId, of.step, rows, now, ...more);
  const mayRepeat = of.includeReplayed ? 1 : 0;
  const count = bind(
    `update replay set looked_at = looked_at + ?8, found = found + ?9,
       replayed = replayed + (select count(*) from ${CHOSEN} where ${SKIPPED_FOR} is null),
       skipped = (select json_group_object(reason, n) from (
         select reason, sum(n) as n from (
           select key as reason, value as n from json_each(replay.skipped)
           union all select ${SKIPPED_FOR}, 1 from ${CHOSEN}
           union all select 'same_event', ?10 where ?10 > 0)
         where reason is not null group by reason))
     where tenant_id = ?1 and id = ?2 and ${IS_NEXT_STEP}`,
    mayRepeat,
    lookedAt,
    found,
    sameEvent,
  );
  if (chosen.length === 0) return { statements: [count, nothing(db)], inserted: 1 };
  const keepPolicy = keepRetryPolicy(db, of.tenantId, policy);
  const insert = bind(
    `insert into delivery (tenant_id, event_id, endpoint_id, replay_no, subscription_id, status, retry_policy_id, created_at,
       scheduled_at, next_attempt_at, replay_of, relay_region, expires_at, lane_key, lane_position, schema_version)
     select tenant_id, event_id, endpoint_id, next_no, subscription_id, 'pending', policy_id, ?6, iif(lane_key is null, ?6, null),
       ?6, replay_no, relay_region, expires_at, lane_key,
       iif(lane_key is null, null, iif(is_head,
         ${inFront(`(select min(x.lane_position) from delivery x where ${OPEN_IN_LANE})`)}
           - count(*) over later_heads,
         max(0, coalesce((select max(x.lane_position) from delivery x where ${OPEN_IN_LANE}), 0))
           + row_number() over (partition by lane_key, is_head order by place))),
       version
     from (
       select j.key as place, d.tenant_id, d.event_id, d.endpoint_id, ${LAST_NO} + 1 as next_no, d.subscription_id,
         coalesce(?8, s.retry_policy_id, ep.retry_policy_id) as policy_id, d.replay_no, d.relay_region, d.expires_at,
         ${REPLAY_LANE_KEY} as lane_key, ${IS_BLOCKED_HEAD} as is_head, ${REPLAYED_VERSION} as version
       from ${CHOSEN}
       where ${SKIPPED_FOR} is null and ${IS_NEXT_STEP}) n
     where true
     window later_heads as (
       partition by lane_key, is_head order by place rows between 1 following and unbounded following)
     returning event_id, replay_no`,
    mayRepeat,
    policy?.id ?? null,
  );
  const statements = [
    ...keepPolicy,
    count,
    redateBehindAll(bind, mayRepeat),
    insert,
    bind(
      `update delivery set replayed_as = (
         select max(x.replay_no) from delivery x where x.tenant_id = ?1 and x.event_id = delivery.event_id and x.endpoint_id = ?3)
       where (tenant_id, event_id, endpoint_id, replay_no) in (
         select ?1, j.value ->> 0, ?3, m.value from json_each(?5) j cross join json_each(j.value -> 2) m
         where ${REPLAYED_NOW}) and terminal_at is not null and ${IS_NEXT_STEP}`,
    ),
    bind(
      `delete from lane_block where tenant_id = ?1 and endpoint_id = ?3 and (event_id, replay_no) in (
         select j.value ->> 0, j.value ->> 1 from json_each(?5) j where ${REPLAYED_NOW})
         and ${IS_NEXT_STEP}`,
    ),
  ];
  return { statements, inserted: keepPolicy.length + 2 };
}

/** As `redateBehind`, for all blocked heads among the chosen that will be replayed. lane_block, then delivery_lane. */
function redateBehindAll(
  bind: (sql: string, mayRepeat: number) => D1PreparedStatement,
  mayRepeat: number,
): D1PreparedStatement {
  return bind(
    `update delivery set scheduled_at = ?6
     from (select distinct b.endpoint_id, b.lane_key
           from ${CHOSEN}
           cross join lane_block b on b.endpoint_id = ?3 and b.tenant_id = ?1 and b.event_id = d.event_id
             and b.replay_no = d.replay_no
           where ${SKIPPED_FOR} is null and ${IS_NEXT_STEP}) b
     where ${MAY_HAVE_AGE}`,
    mayRepeat,
  );
}

/** Keeps the places of a batch's results. */
function nothing(db: D1Database): D1PreparedStatement {
  return db.prepare("select 1 as n where false");
}
