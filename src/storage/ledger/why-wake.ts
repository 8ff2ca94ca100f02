const OF_LANE = "x.endpoint_id = l.endpoint_id and x.terminal_at is null and x.lane_key is not null";

/** Why lane `l` of endpoint `ep` is to be woken, by when it expires, is due while it is disabled, or is due. */
const whyLane = (expiresAt: string, runningAt: string, dueAt: string, mayBeDue: string) => `case
  when ep.deleted_at is not null or ${expiresAt} <= ?2 then 'due'
  when ep.disabled_at is not null then iif(${runningAt} <= ?2, 'due', null)
  when ep.paused_at is not null or t.status <> 'active' then null
  when ${dueAt} <= ?2 then 'due'
  when ${mayBeDue} then 'long' end`;

/**
 * All that stands behind its head waits as long as the head does, though it is due from the beginning: as a reason like any
 * other it would have the lane of a head that waits for a retry woken by each pass. It is no more than one to look sometimes.
 */
const WHY_STRICT = `
  select ${whyLane(
    "expires_at",
    "iif(scheduled_at is null, null, next_attempt_at)",
    "next_attempt_at",
    `(select next_attempt_at from delivery x where ${OF_LANE} order by lane_key, lane_position limit 1 offset 1) <= ?2`,
  )}
  from delivery x where ${OF_LANE} order by lane_key, lane_position limit 1`;

const WHY_OTHER = `
  select ${whyLane(
    "min(expires_at)",
    "min(iif(scheduled_at is null, null, next_attempt_at))",
    "min(next_attempt_at)",
    "count(*) = 200",
  )}
  from (select next_attempt_at, scheduled_at, expires_at from delivery x where ${OF_LANE}
    order by lane_key, lane_position limit 200)`;

/**
 * Of a lane `l`, its endpoint `ep` and tenant `t`: `due` when there is work for it by ?2, `long` when there may be, else null.
 * delivery_lane.
 */
export const WHY_WAKE = `case
  when ep.route <> 'lane' then null
  when ep.ordering_mode = 'strict' then (${WHY_STRICT})
  else (${WHY_OTHER}) end`;
