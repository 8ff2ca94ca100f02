import { LOOKED_AT_PER_STEP, type Choice, type ReplayPart, type Walked } from "../../../core/replay.ts";
import type { RetryPolicy } from "../../../core/retry-policy.ts";
import { toRetryPolicyRow } from "../../config/retry-policies.ts";
import { completeWhenDone, endReplay } from "./jobs.ts";
import { eventsBefore, isMeant, replayableAt } from "./meant.ts";
import { replayChosen } from "./replay-chosen.ts";

type Row = Record<string, any>;

const KEY = "tenant_id = ?1 and replay_id = ?2 and endpoint_id = ?3";

/** What the watchdog does for bulk replays. Whatever it writes is under the number of the step that it was worked out from. */
export function createReplayStepLedger(db: D1Database) {
  return {
    /** Parts whose next step is due, the longest due first. replay_part_due, then primary keys. */
    async listDueReplayParts(now: number, limit: number): Promise<ReplayPart[]> {
      const { results } = await db
        .prepare(
          `select p.*, r.filter, r.to_subscription_id, r.retry_policy, r.include_replayed, r.started_at, ep.route,
             ep.lane_generation, y.policy,
             (select json_group_array(json(j.value)) from json_each(p.open) j
              cross join delivery d on d.tenant_id = p.tenant_id and d.event_id = j.value ->> 0
                and d.endpoint_id = p.endpoint_id and d.replay_no = j.value ->> 1
              where d.terminal_at is null) as still_open
           from (select * from replay_part where next_step_at <= ?1 order by next_step_at limit ?2) p
           cross join replay r on r.tenant_id = p.tenant_id and r.id = p.replay_id
           cross join endpoint ep on ep.tenant_id = p.tenant_id and ep.id = p.endpoint_id
           cross join retry_policy y on y.tenant_id = ep.tenant_id and y.id = ep.retry_policy_id`,
        )
        .bind(now, limit)
        .all<Row>();
      return results.map(toPart);
    },

    /** The next deliveries of a part, in order of event and replay number. delivery_replayable, then primary keys. */
    async walkReplayable({ tenantId, endpointId, afterEventId, filter, startedAt, includeReplayed }: ReplayPart) {
      const { results } = await db
        .prepare(
          `select k.event_id, k.replay_no, ${isMeant("?5", "?6", "?7")} as is_meant
           from (${replayableAt(filter, LOOKED_AT_PER_STEP)}) k
           cross join delivery d on d.tenant_id = ?1 and d.event_id = k.event_id and d.endpoint_id = k.endpoint_id
             and d.replay_no = k.replay_no
           cross join event e on e.tenant_id = d.tenant_id and e.id = d.event_id
           order by k.event_id, k.replay_no`,
        )
        .bind(
          tenantId,
          endpointId,
          afterEventId,
          eventsBefore(filter),
          JSON.stringify(filter),
          startedAt,
          includeReplayed ? 1 : 0,
        )
        .all<Row>();
      const walked = results.map((row): Walked => ({
        eventId: row["event_id"],
        replayNo: row["replay_no"],
        isMeant: row["is_meant"] === 1,
      }));
      return { walked, mayHaveMore: results.length === LOOKED_AT_PER_STEP };
    },

    /**
     * Takes one step, in one batch: counts it, inserts the replays, marks what they repeat, and moves on to `nextStepAt`, or ends
     * the part. All of it only while the replay runs and this step has not been taken: done again, or by two at once, it
     * changes nothing. Gives back what was made. A few rows of the job; for each replay those of a delivery, and its mark.
     */
    async takeReplayStep(
      part: ReplayPart,
      choice: Choice,
      policy: RetryPolicy | null,
      now: number,
      nextStepAt: number,
    ): Promise<{ eventId: string; replayNo: number }[]> {
      const { tenantId, replayId } = part;
      const policyRow = policy && (await toRetryPolicyRow(policy));
      const { statements, inserted } = replayChosen(db, part, choice, policyRow, now);
      const results = await db.batch<Row>([
        ...statements,
        choice.afterEventId === null
          ? endPart(db, part)
          : moveOn(
              db,
              part,
              choice.chosen.map(({ eventId }) => eventId),
              choice.afterEventId,
              now,
              nextStepAt,
            ),
        completeWhenDone(db, tenantId, replayId, now),
      ]);
      return results[inserted]!.results.map((row) => ({ eventId: row["event_id"], replayNo: row["replay_no"] }));
    },

    /** There was no room, or a step failed: it is looked at again later. Nothing where the step was taken meanwhile. */
    async putOffReplayStep(part: ReplayPart, to: { waits: number; faults: number; nextStepAt: number }): Promise<void> {
      await db
        .prepare(
          `update replay_part set open = ?5, waits = ?6, faults = ?7, next_step_at = ?8
           where ${KEY} and step = ?4`,
        )
        .bind(
          part.tenantId,
          part.replayId,
          part.endpointId,
          part.step,
          JSON.stringify(part.open),
          to.waits,
          to.faults,
          to.nextStepAt,
        )
        .run();
    },

    async failReplay(tenantId: string, replayId: string, error: string, now: number): Promise<void> {
      await db.batch(endReplay(db, tenantId, replayId, "failed", error, now));
    },
  };
}

/** The condition on the tenant's configuration is for what was worked out from it. */
const UNDER = (revision: string) => `coalesce(${revision}, (select revision from tenant where id = ?1)) = (
  select revision from tenant where id = ?1)`;

export function endPart(
  db: D1Database,
  { tenantId, replayId, endpointId, step }: ReplayPart,
  revision: number | null = null,
): D1PreparedStatement {
  return db
    .prepare(`delete from replay_part where ${KEY} and step = ?4 and ${UNDER("?5")}`)
    .bind(tenantId, replayId, endpointId, step, revision);
}

/** What was made just now is open too. */
export function moveOn(
  db: D1Database,
  { tenantId, replayId, endpointId, step, open }: ReplayPart,
  eventIds: string[],
  afterEventId: string,
  now: number,
  nextStepAt: number,
  revision: number | null = null,
): D1PreparedStatement {
  const made = `select json_array(d.event_id, d.replay_no) from json_each(?8) j
    cross join delivery d on d.tenant_id = ?1 and d.event_id = j.value and d.endpoint_id = ?3
    where d.replay_no > 0 and d.created_at = ?9 and d.terminal_at is null`;
  return db
    .prepare(
      `update replay_part set step = step + 1, after_event_id = ?5, next_step_at = ?6, waits = 0, faults = 0,
         open = (select json_group_array(json(o.value)) from (
           select value from json_each(?7) union all ${made}) o)
       where ${KEY} and step = ?4 and ${UNDER("?10")}`,
    )
    .bind(
      tenantId,
      replayId,
      endpointId,
      step,
      afterEventId,
      nextStepAt,
      JSON.stringify(open),
      JSON.stringify(eventIds),
      now,
      revision,
    );
}

function toPart(row: Row): ReplayPart {
  return {
    tenantId: row["tenant_id"],
    replayId: row["replay_id"],
    endpointId: row["endpoint_id"],
    step: row["step"],
    afterEventId: row["after_event_id"],
    open: JSON.parse(row["still_open"]),
    waits: row["waits"],
    faults: row["faults"],
    filter: JSON.parse(row["filter"]),
    toSubscriptionId: row["to_subscription_id"],
    retryPolicy: row["retry_policy"] && JSON.parse(row["retry_policy"]),
    includeReplayed: row["include_replayed"] === 1,
    startedAt: row["started_at"],
    endpointPolicy: JSON.parse(row["policy"]),
    lane: row["route"] === "lane" ? { generation: row["lane_generation"] } : null,
  };
}
