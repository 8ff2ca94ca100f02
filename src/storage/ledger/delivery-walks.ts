/** How to walk a tenant's deliveries newest first by created_at, or back: by which index, and from where to where. */
import type { DeliveryFilters } from "../../core/delivery-filters.ts";
import { eventIdTimeMs, firstEventIdAt, isEventId } from "../../core/ids.ts";
import type { DeliveryStatus } from "../../core/model.ts";
import { compareKeys, type DeliveryKey } from "../../core/row-keys.ts";
import { isTowardNewer, type Place } from "../../core/two-way.ts";
import { prepare, rowsOf, type Filter, type Listed, type Sql, type Walk } from "./paging.ts";
import { DELIVERY_COLUMNS } from "./read-rows.ts";
import type { Page } from "./two-way-list.ts";

const KEY = ["created_at", "event_id", "endpoint_id", "replay_no"];

export const DELIVERIES: Listed = {
  table: "delivery",
  key: KEY,
  identity: ["event_id", "endpoint_id", "replay_no"],
  columns: DELIVERY_COLUMNS,
};

interface Bound {
  key: DeliveryKey;
  isIncluded: boolean;
}

/** Between which keys a walk goes. */
export interface Span {
  upper: Bound | null;
  lower: Bound | null;
}

/** What times and cursor leave of the list. Where both bound it, an index must be given the nearer. */
export function spanOf(filters: DeliveryFilters, from: Place<DeliveryKey> | null): Span {
  const cursor = from && { key: from.key, isIncluded: from.side.endsWith("_or_same") };
  const isNewer = from?.side.startsWith("newer");
  const before: Bound | null =
    filters.createdBefore === undefined ? null : { key: [filters.createdBefore, "", "", 0], isIncluded: false };
  const after: Bound | null =
    filters.createdAfter === undefined ? null : { key: [filters.createdAfter, "~", "~", 0], isIncluded: false };
  const nearest = (bounds: (Bound | null)[]) =>
    bounds.filter((bound) => bound !== null).toSorted((a, b) => compareKeys(b.key, a.key));
  return {
    upper: nearest([before, isNewer ? null : cursor]).at(-1) ?? null,
    lower: nearest([after, isNewer ? cursor : null])[0] ?? null,
  };
}

/** In an index that has created_at in order. The rest of the key need not be in it: few rows share a millisecond. */
function withinSpan({ upper, lower }: Span, of = ""): Sql {
  const parts: Sql[] = [];
  const key = `(${KEY.map((column) => of + column).join(", ")})`;
  if (upper) {
    const operator = upper.isIncluded ? "<=" : "<";
    parts.push({
      sql: `${of}created_at <= ? and ${key} ${operator} (?, ?, ?, ?)`,
      values: [upper.key[0], ...upper.key],
    });
  }
  if (lower) {
    const operator = lower.isIncluded ? ">=" : ">";
    parts.push({
      sql: `${of}created_at >= ? and ${key} ${operator} (?, ?, ?, ?)`,
      values: [lower.key[0], ...lower.key],
    });
  }
  return { sql: parts.map(({ sql }) => ` and ${sql}`).join(""), values: parts.flatMap(({ values }) => values) };
}

/** By an index other than the table itself: it and the row are read, and the index once more. */
function walk(fixed: Sql, span: Span, readsEach = 3): Walk {
  const within = withinSpan(span);
  return {
    sql: `delivery where ${fixed.sql}${within.sql}`,
    values: [...fixed.values, ...within.values],
    order: KEY,
    readsEach,
  };
}

/** Part of the primary key. */
export function walkOfEvent(tenantId: string, eventId: string, span: Span): Walk {
  return walk({ sql: "tenant_id = ? and event_id = ?", values: [tenantId, eventId] }, span);
}

/** delivery_subscription, in which no tenant is the first: of a subscription that is somebody else's nothing is walked through. */
export function walkOfSubscription(tenantId: string, subscriptionId: string, span: Span): Walk {
  const own = "(select s.id from subscription s where s.tenant_id = ? and s.id = ?)";
  return walk(
    { sql: `subscription_id = ${own} and +tenant_id = ?`, values: [tenantId, subscriptionId, tenantId] },
    span,
  );
}

/** delivery_unsuccessful, which holds none that succeeded. */
export function walkOfStatus(tenantId: string, status: DeliveryStatus, span: Span, isCovering: boolean): Walk {
  const sql = "tenant_id = ? and status = ? and terminal_at is not null and status <> 'succeeded'";
  return walk({ sql, values: [tenantId, status] }, span, isCovering ? 2 : 3);
}

/**
 * All of a tenant: two walks. A first delivery is as old as its event, whose id begins with its time, so the primary key holds those
 * in order; replays are younger and have an index of their own, delivery_replay.
 */
export function walksOfTenant(tenantId: string, span: Span): Walk[] {
  const within = withinEventIds(span);
  return [
    {
      sql: `delivery where tenant_id = ? and replay_no = 0${within.sql}`,
      values: [tenantId, ...within.values],
      order: ["event_id", "endpoint_id"],
      readsEach: 2,
    },
    walk({ sql: "tenant_id = ? and replay_no > 0", values: [tenantId] }, span),
  ];
}

function withinEventIds({ upper, lower }: Span): Sql {
  const parts: Sql[] = [];
  if (upper) {
    const [eventId, ...rest] = firstDeliveryBound(upper.key);
    const operator = upper.isIncluded ? "<=" : "<";
    const sql = `event_id <= ? and (event_id, endpoint_id, 0) ${operator} (?, ?, ?)`;
    parts.push({ sql, values: [eventId, eventId, ...rest] });
  }
  if (lower) {
    const [eventId, ...rest] = firstDeliveryBound(lower.key);
    const operator = lower.isIncluded ? ">=" : ">";
    const sql = `event_id >= ? and (event_id, endpoint_id, 0) ${operator} (?, ?, ?)`;
    parts.push({ sql, values: [eventId, eventId, ...rest] });
  }
  return { sql: parts.map(({ sql }) => ` and ${sql}`).join(""), values: parts.flatMap(({ values }) => values) };
}

/**
 * Where a key stands among first deliveries, which are in the order of their events. The key of a replay, whose event is older
 * than it, and one that is only a time, stand before all of their millisecond, or (`~`) behind them.
 */
function firstDeliveryBound([createdAt, eventId, endpointId, replayNo]: DeliveryKey): [string, string, number] {
  if (isEventId(eventId) && eventIdTimeMs(eventId) === createdAt) return [eventId, endpointId, replayNo];
  return [firstEventIdAt(eventId === "~" ? createdAt + 1 : createdAt), "", 0];
}

/**
 * How many deliveries are open, up to one more than `maxOpen` of each index, and those of the page: the indexes have not got them in
 * the list's order, so all of them are put into it. Of the queues delivery_due, which
 * is all tenants', and in lanes delivery_lane; only of the tenant's own more than the index is read.
 */
export function openStatements(
  db: D1Database,
  endpointId: string | undefined,
  filters: Filter[],
  span: Span,
  page: Page<DeliveryKey>,
): D1PreparedStatement[] {
  const key = "tenant_id, event_id, endpoint_id, replay_no";
  const most = page.reach.maxOpen + 1;
  const due = `select ${key} from delivery indexed by delivery_due
    where status in ('pending', 'processing') and terminal_at is null and lane_key is null limit ${most}`;
  const inLane = `select ${key} from delivery indexed by delivery_lane
    where terminal_at is null and lane_key is not null and endpoint_id ${endpointId === undefined ? ">= ''" : "= ?"} limit ${most}`;
  const ofLane = endpointId === undefined ? [] : [endpointId];
  const within = withinSpan(span, "d.");
  const direction = isTowardNewer(page.from) ? "asc" : "desc";
  const found = {
    sql: `select ${KEY.map((column) => `d.${column}`).join(", ")}
      from (select * from (${due}) union all select * from (${inLane})) o
      cross join delivery d on d.tenant_id = o.tenant_id and d.event_id = o.event_id and d.endpoint_id = o.endpoint_id
        and d.replay_no = o.replay_no
      where o.tenant_id = ?${within.sql} and ${filters.map(({ sql }) => sql).join(" and ")}
      order by ${KEY.map((column) => `d.${column} ${direction}`).join(", ")} limit ${page.limit + 1}`,
    values: [...ofLane, page.tenantId, ...within.values, ...filters.flatMap(({ values }) => values)],
  };
  return [
    prepare(db, {
      sql: `select count(*) as n from (${due}) union all select count(*) as n from (${inLane})`,
      values: ofLane,
    }),
    prepare(db, rowsOf(DELIVERIES, found), [page.tenantId]),
  ];
}
