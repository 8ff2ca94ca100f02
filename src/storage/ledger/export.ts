import { eventIdTimeMs } from "../../core/ids.ts";
import type { Attempt, Delivery } from "../../core/model.ts";
import type { AttemptKey, DeliveryKey } from "../../core/row-keys.ts";
import {
  ATTEMPT_COLUMNS,
  DELIVERY_COLUMNS,
  EVENT_COLUMNS,
  toAttempt,
  toDelivery,
  toEvent,
  type Row,
} from "./read-rows.ts";

/** What an attempt is of. */
type ExportedAttempt = Attempt & { eventId: string; endpointId: string; replayNo: number };

/** Rows of one page, oldest first; `stoppedAt` is the last key that was looked at when there may be more behind it. */
interface Page<T, Key> {
  rows: T[];
  stoppedAt: Key | null;
}

const MAX_FAN_OUTS = 1_000;

/** Pages of everything a tenant has, oldest first. Of expired rows a page has nothing but its end. */
export function createExportLedger(db: D1Database) {
  return {
    /**
     * Since when deliveries of this tenant may still be made of events that are there: everything before is whole. Among the first parts
     * of all tenants, with more of them as far as those were looked at. fan_out's primary key.
     */
    async findOldestFanOutAt(tenantId: string): Promise<number | null> {
      const row = await db
        .prepare(
          `select min(iif(tenant_id = ?1, event_id, null)) as own, max(event_id) as last, count(*) as n
           from (select tenant_id, event_id from fan_out order by event_id, part limit ?2)`,
        )
        .bind(tenantId, MAX_FAN_OUTS)
        .first<Row>();
      const oldest = row!["own"] ?? (row!["n"] === MAX_FAN_OUTS ? row!["last"] : null);
      return oldest === null ? null : eventIdTimeMs(oldest);
    },

    /** Events behind an id and before another. Primary key. */
    async exportEvents(tenantId: string, after: string, before: string, limit: number, now: number) {
      const { results } = await db
        .prepare(
          `select ${EVENT_COLUMNS}, expires_at > ?5 as is_shown from event d
           where tenant_id = ?1 and id > ?2 and id < ?3 order by id limit ?4`,
        )
        .bind(tenantId, after, before, limit, now)
        .all<Row>();
      return page(results, limit, toEvent, (row) => row["id"] as string);
    },

    /**
     * Deliveries behind a key and before a time, in two walks: first ones by the primary key, which event ids put in order of time, and
     * replays by delivery_replay.
     */
    async exportDeliveries(
      tenantId: string,
      { first, replay }: { first: [eventId: string, endpointId: string]; replay: DeliveryKey },
      before: { eventId: string; createdAt: number },
      limit: number,
      now: number,
    ): Promise<{ firsts: Page<Delivery, DeliveryKey>; replays: Page<Delivery, DeliveryKey> }> {
      const shown = (from: string, order: string) =>
        `select ${DELIVERY_COLUMNS}, d.expires_at > ?1 as is_shown from (select * from delivery where ${from}
         order by ${order} limit ?2) d order by ${order}`;
      const [firsts, replays] = await db.batch<Row>([
        db
          .prepare(
            shown(
              "tenant_id = ?3 and (event_id, endpoint_id) > (?4, ?5) and event_id < ?6",
              "event_id, endpoint_id, replay_no",
            ),
          )
          .bind(now, limit, tenantId, ...first, before.eventId),
        db
          .prepare(
            shown(
              `tenant_id = ?3 and replay_no > 0 and created_at < ?8
               and (created_at, event_id, endpoint_id, replay_no) > (?4, ?5, ?6, ?7)`,
              "created_at, event_id, endpoint_id, replay_no",
            ),
          )
          .bind(now, limit, tenantId, ...replay, before.createdAt),
      ]);
      // A replay stands among the first ones by its event's time; its own place is in the other walk.
      return {
        firsts: page(firsts!.results, limit, toDelivery, toFirstKey, (row) => row["replay_no"] === 0),
        replays: page(replays!.results, limit, toDelivery, toDeliveryKey),
      };
    },

    /** Attempts of events in order of id, each delivery's in order. Primary keys. */
    async exportAttempts(
      tenantId: string,
      after: AttemptKey,
      beforeEventId: string,
      limit: number,
      now: number,
    ): Promise<Page<ExportedAttempt, AttemptKey>> {
      const order = "event_id, endpoint_id, replay_no, attempt_number";
      const { results } = await db
        .prepare(
          `select ${ATTEMPT_COLUMNS}, (select d.expires_at > ?2 from delivery d where d.tenant_id = a.tenant_id
             and d.event_id = a.event_id and d.endpoint_id = a.endpoint_id and d.replay_no = a.replay_no) as is_shown
           from (select * from attempt where tenant_id = ?1 and (${order}) > (?4, ?5, ?6, ?7) and event_id < ?8
             order by ${order} limit ?3) a
           order by ${order}`,
        )
        .bind(tenantId, now, limit, ...after, beforeEventId)
        .all<Row>();
      return page(results, limit, toExportedAttempt, (row) => [
        row["event_id"],
        row["endpoint_id"],
        row["replay_no"],
        row["attempt_number"],
      ]);
    },
  };
}

function page<T, Key>(
  looked: Row[],
  limit: number,
  toRow: (row: Row) => T,
  keyOf: (row: Row) => Key,
  isOfWalk: (row: Row) => boolean = () => true,
): Page<T, Key> {
  return {
    rows: looked.filter((row) => row["is_shown"] === 1 && isOfWalk(row)).map(toRow),
    stoppedAt: looked.length === limit ? keyOf(looked.at(-1)!) : null,
  };
}

function toDeliveryKey(row: Row): DeliveryKey {
  return [row["created_at"], row["event_id"], row["endpoint_id"], row["replay_no"]];
}

/** Where the walk over first deliveries has come to: by the time of the event, whatever else stands there. */
function toFirstKey(row: Row): DeliveryKey {
  return [eventIdTimeMs(row["event_id"]), row["event_id"], row["endpoint_id"], 0];
}

function toExportedAttempt(row: Row): ExportedAttempt {
  return {
    ...toAttempt(row),
    eventId: row["event_id"],
    endpointId: row["endpoint_id"],
    replayNo: row["replay_no"],
  };
}
