import { firstEventIdAt } from "../../core/ids.ts";
import type { Event } from "../../core/model.ts";
import type { Place } from "../../core/two-way.ts";
import { REACH, type Filter, type Listed, type Walk } from "./paging.ts";
import { EVENT_COLUMNS, toEvent } from "./read-rows.ts";
import { readTwoWay, readWalks, type Reading, type TwoWayRows } from "./two-way-list.ts";

export interface EventFilters {
  type?: string | undefined;
  sourceId?: string | undefined;
  orderingKey?: string | undefined;
  createdAfter?: number | undefined;
  createdBefore?: number | undefined;
}

const EVENTS: Listed = { table: "event", key: ["id"], identity: ["id"], columns: EVENT_COLUMNS };

const READING: Reading<Event, string> = {
  row: toEvent,
  key: (row) => row["id"] as string,
  keyOf: ({ id }) => id,
  compare: (a, b) => (a < b ? 1 : a > b ? -1 : 0),
};

export function createListEventsLedger(db: D1Database, reach = REACH) {
  return {
    /** Newest first, or back. Primary key. */
    async listEvents(
      tenantId: string,
      filters: EventFilters,
      from: Place<string> | null,
      limit: number,
      now: number,
    ): Promise<TwoWayRows<Event, string>> {
      return readTwoWay(READING, { tenantId, from, limit, reach }, (page) =>
        readWalks(db, EVENTS, READING, [eventWalk(tenantId, filters, page.from)], eventFilters(filters, now), page),
      );
    },
  };
}

/** Where both times and cursor bound it on one side, the index is given the nearer. */
function eventWalk(tenantId: string, { createdAfter, createdBefore }: EventFilters, from: Place<string> | null): Walk {
  const isIncluded = from?.side.endsWith("_or_same");
  const cursor = (side: string, sql: string) => (from?.side.startsWith(side) ? [{ id: from.key, sql }] : []);
  const before = createdBefore === undefined ? [] : [{ id: firstEventIdAt(createdBefore), sql: "id < ?" }];
  const after = createdAfter === undefined ? [] : [{ id: firstEventIdAt(createdAfter + 1), sql: "id >= ?" }];
  const byId = (a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
  const upper = [...before, ...cursor("older", isIncluded ? "id <= ?" : "id < ?")].toSorted(byId)[0];
  const lower = [...after, ...cursor("newer", isIncluded ? "id >= ?" : "id > ?")].toSorted(byId).at(-1);
  const bounds = [upper, lower].filter((bound) => bound !== undefined);
  return {
    sql: `event where tenant_id = ?${bounds.map(({ sql }) => ` and ${sql}`).join("")}`,
    values: [tenantId, ...bounds.map(({ id }) => id)],
    order: ["id"],
    readsEach: 2,
  };
}

function eventFilters({ type, sourceId, orderingKey }: EventFilters, now: number): Filter[] {
  const equal = (column: string, value: string | undefined) =>
    value === undefined ? [] : [{ sql: `d.${column} = ?`, values: [value], columns: [column] }];
  return [
    { sql: "d.expires_at > ?", values: [now], columns: ["expires_at"] },
    ...equal("type", type),
    ...equal("source_id", sourceId),
    ...equal("ordering_key", orderingKey),
  ];
}
