import { FAILING_TOLD_AFTER_MS, FAILURE_NOTED_EVERY_MS, QUIET_ENDS_FAILING_MS } from "../../core/failing-clock.ts";
import { RETRY_KEY_PREFIX } from "../../core/lane.ts";
import type { Closing } from "./close.ts";
import { disableEndpoint } from "./disable.ts";
import { raiseFailing } from "./raise.ts";

/** How many deliveries are looked at for a success that was asked for after a failure which is told later. */
const NEIGHBOURS = 20;

/**
 * Moves an endpoint's clock by what an attempt came to, and disables it where the clock has run out. To be done before the
 * attempt is closed: a failure counts with the close of an open attempt, so one told twice, or replacing `abandoned` long after,
 * counts for nothing. A success may be told as often as one likes: it ends what had begun when it was asked for, and nothing
 * that began later. Attempts are compared by when their requests began, and the URL must be the one they went to. While nothing
 * changes no row is written and one is read. Neither revision moves: this is no configuration.
 */
export function clockStatements(db: D1Database, closing: Closing): D1PreparedStatement[] {
  if (!closing.clock) return [];
  if (closing.clock.mark === "success") return [endFailing(db, closing, closing.clock)];
  return [
    noteFailure(db, closing, closing.clock),
    ...(closing.disable?.reason === "failing" ? disableFailing(db, closing, closing.clock) : []),
    ...(closing.clock.mayTell ? tellOfFailing(db, closing, closing.clock) : []),
  ];
}

type Clock = NonNullable<Closing["clock"]>;

/** Primary key. */
function endFailing(db: D1Database, closing: Closing, { url, requestedAt }: Clock): D1PreparedStatement {
  return db
    .prepare(
      `update endpoint set failing_since = null, failure_noted_at = null
       where tenant_id = ?1 and id = ?2 and failing_since <= ?4 and url = ?3`,
    )
    .bind(closing.tenantId, closing.endpointId, url, requestedAt);
}

/**
 * Whether the oldest retry of endpoint ?2 was due at ?4 and stood behind first attempts. A lane that has enough of those tries no
 * retry, so their failures must count. delivery_lane.
 */
const IS_RETRY_OVERDUE = `coalesce((
  select r.next_attempt_at <= ?4 from delivery r
  where r.endpoint_id = ?2 and r.lane_key >= '${RETRY_KEY_PREFIX}' and r.lane_key < '${RETRY_KEY_PREFIX.trimEnd()}!'
    and r.terminal_at is null and r.lane_key is not null and +r.tenant_id = ?1
  order by r.lane_key limit 1), 0)`;

/**
 * Begins a time of failing, unless this is a delivery's first failure and its retry will have its turn, or says that it goes on.
 * A failure that was overtaken by a success begins none: one that began later and is on record already is looked for among the
 * deliveries that were made since this request began, and those made right after its own. Primary keys, and
 * delivery_subscription for the failure that would begin it.
 */
function noteFailure(db: D1Database, closing: Closing, { mark, url, requestedAt }: Clock): D1PreparedStatement {
  const own = "tenant_id = ?1 and event_id = ?5 and endpoint_id = ?2 and replay_no = ?6";
  const from = (createdAt: string) =>
    `select * from (
       select d.status, d.last_attempt_at from delivery d
       where d.subscription_id = (select subscription_id from delivery where ${own}) and d.created_at >= ${createdAt}
         and +d.tenant_id = ?1 and +d.endpoint_id = ?2
       order by d.created_at limit ${NEIGHBOURS})`;
  return db
    .prepare(
      `update endpoint set failure_noted_at = ?4,
         failing_since = iif(?4 <= failure_noted_at + ${QUIET_ENDS_FAILING_MS}, failing_since, ?4)
       where tenant_id = ?1 and id = ?2
         and iif(failing_since is null, ?8 or quarantined_at is not null or ${IS_RETRY_OVERDUE},
           ?4 >= failure_noted_at + ${FAILURE_NOTED_EVERY_MS})
         and url = ?3 and disabled_at is null and deleted_at is null
         and ${isOpen("?5", "?6", "?7")}
         and (failing_since is not null or not exists (
           select 1 from (${from("?4")} union all ${from(`(select created_at from delivery where ${own})`)})
           where status = 'succeeded' and last_attempt_at > ?4))`,
    )
    .bind(
      closing.tenantId,
      closing.endpointId,
      url,
      requestedAt,
      closing.eventId,
      closing.replayNo,
      closing.attemptNumber,
      mark === "failure" ? 1 : 0,
    );
}

/** What the endpoint says now decides: a success, an enable or another URL since the claim, and nothing is disabled. */
function disableFailing(db: D1Database, closing: Closing, { url, requestedAt }: Clock): D1PreparedStatement[] {
  const { tenantId, endpointId, eventId, replayNo, attemptNumber, attempt } = closing;
  return disableEndpoint(
    db,
    { tenantId, endpointId, url, reason: "failing", now: attempt.respondedAt, by: eventId },
    {
      sql: `failing_since + disable_after_failing_seconds * 1000 <= ?6 and ${isOpen("?7", "?8", "?9")}`,
      parameters: [requestedAt, eventId, replayNo, attemptNumber],
    },
  );
}

/** Not of one that has just been disabled, which is told of as that. */
function tellOfFailing(db: D1Database, closing: Closing, { url, requestedAt }: Clock): D1PreparedStatement[] {
  const { replayNo, attemptNumber } = closing;
  return raiseFailing(db, closing, {
    sql: `ep.failing_since <= ?7 and ep.url = ?8 and ${isOpen("?6", "?9", "?10")}`,
    parameters: [requestedAt - FAILING_TOLD_AFTER_MS, url, replayNo, attemptNumber],
  });
}

/** Whether the attempt is still to be closed: of endpoint ?2 of tenant ?1, by its primary key. */
const isOpen = (eventId: string, replayNo: string, attemptNumber: string) => `exists (
  select 1 from attempt a where a.tenant_id = ?1 and a.event_id = ${eventId} and a.endpoint_id = ?2
    and a.replay_no = ${replayNo} and a.attempt_number = ${attemptNumber} and a.outcome_class is null)`;
