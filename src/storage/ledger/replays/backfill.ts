import { firstEventIdAt } from "../../../core/ids.ts";
import type { EventChoice, ReplayFilter, ReplayPart } from "../../../core/replay.ts";
import type { RetryPolicy } from "../../../core/retry-policy.ts";
import { TEST_EVENT_TYPE } from "../../../core/test-event.ts";
import { toRetryPolicyRow } from "../../config/retry-policies.ts";
import { EVENT_COLUMNS, toEvent, type Row } from "../read-rows.ts";
import { completeWhenDone } from "./jobs.ts";
import { eventsBefore } from "./meant.ts";
import { insertBackfilled } from "./insert-backfilled.ts";
import { endPart, moveOn } from "./steps.ts";

const EVENTS_PER_WALK = 500;

/** Past events for a subscription that is new. */
export function createBackfillLedger(db: D1Database) {
  return {
    /** Oldest first. A test send is nobody's event, though `hooklane.*` reads as if it were. Primary keys. */
    async walkEvents(
      { tenantId, endpointId, filter }: { tenantId: string; endpointId: string; filter: ReplayFilter },
      after: string,
      until: number,
    ) {
      const from = firstEventIdAt((filter.createdAfter ?? -1) + 1);
      const before = [eventsBefore(filter), firstEventIdAt(until + 1)].toSorted()[0]!;
      const { results } = await db
        .prepare(
          `select ${EVENT_COLUMNS}, coalesce(?6 ->> 'eventType', d.type) = d.type
               and coalesce(?6 ->> 'sourceId', d.source_id) = d.source_id and d.expires_at > ?7
               and d.type <> '${TEST_EVENT_TYPE}' as is_meant,
             exists (select 1 from delivery x where x.tenant_id = ?1 and x.event_id = d.id and x.endpoint_id = ?5) as has_delivery
           from event d where tenant_id = ?1 and id > ?2 and id >= ?3 and id < ?4 order by id limit ${EVENTS_PER_WALK}`,
        )
        .bind(tenantId, after, from, before, endpointId, JSON.stringify(filter), until)
        .all<Row>();
      const events = results.map((row) => ({
        ...toEvent(row),
        isMeant: row["is_meant"] === 1,
        hasDelivery: row["has_delivery"] === 1,
      }));
      return { events, mayHaveMore: results.length === EVENTS_PER_WALK };
    },

    /**
     * `takeReplayStep` for events: in one batch, which writes nothing unless the replay runs, this step has not been taken, and the
     * tenant's configuration is still that of `choice.revision`.
     */
    async takeBackfillStep(
      part: ReplayPart,
      choice: EventChoice,
      policy: RetryPolicy | null,
      now: number,
      nextStepAt: number,
    ): Promise<{ eventId: string; replayNo: number }[]> {
      const policyRow = policy && (await toRetryPolicyRow(policy));
      const { statements, inserted } = insertBackfilled(db, part, choice, policyRow, now);
      const eventIds = choice.chosen.map(({ eventId }) => eventId);
      const results = await db.batch<Row>([
        ...statements,
        choice.afterEventId === null
          ? endPart(db, part, choice.revision)
          : moveOn(db, part, eventIds, choice.afterEventId, now, nextStepAt, choice.revision),
        completeWhenDone(db, part.tenantId, part.replayId, now),
      ]);
      return results[inserted]!.results.map((row) => ({ eventId: row["event_id"], replayNo: row["replay_no"] }));
    },
  };
}
