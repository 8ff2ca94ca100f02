import { eventIdTimeMs, firstEventIdAt, isEventId, type DeliveryRef } from "../../core/ids.ts";
import type { Delivery, Event } from "../../core/model.ts";
import { mergePages } from "../../core/merge-pages.ts";
import { pageStatements, type Filter, type Walk } from "./paging.ts";
import {
  ATTEMPT_COLUMNS,
  DELIVERY_COLUMNS,
  EVENT_COLUMNS,
  toAttempt,
  toDelivery,
  toEvent,
  type Row,
} from "./read-rows.ts";

export interface EventFilters {
  type?: string | undefined;
  sourceId?: string | undefined;
  createdAfter?: number | undefined;
  createdBefore?: number | undefined;
}

export interface DeliveryFilters {
  endpointId?: string | undefined;
  subscriptionId?: string | undefined;
  eventId?: string | undefined;
  eventType?: string | undefined;
  status?: string | undefined;
  /** Those that have no replay. */
  isOpen?: boolean | undefined;
  errorClass?: string | undefined;
  createdAfter?: number | undefined;
  createdBefore?: number | undefined;
}

/** Where a list of deliveries goes on: the key of the last row, newest first. */
export type DeliveryKey = [createdAt: number, eventId: string, endpointId: string, replayNo: number];

/** What a query sees of an expired row: nothing. */
export function createReadLedger(db: D1Database) {
  return {
    /** Primary key. */
    async findEvent(tenantId: string, id: string, now: number): Promise<Event | null> {
      const row = await db
        .prepare(`select ${EVENT_COLUMNS} from event d where tenant_id = ? and id = ? and expires_at > ?`)
        .bind(tenantId, id, now)
        .first<Row>();
      return row && toEvent(row);
    },

    /** Newest first. Primary key, backwards. */
    async listEvents(tenantId: string, filters: EventFilters, before: string | null, limit: number, now: number) {
      const walk = eventWalk(tenantId, filters, before);
      const [rows, stop] = await db.batch<Row>(
        pageStatements(db, walk, EVENT_COLUMNS, "id", eventFilters(filters, now), limit),
      );
      const { rows: events, next } = mergePages(
        [{ rows: rows!.results.map(toEvent), stoppedAt: (stop!.results[0]?.["id"] as string) ?? null }],
        (event) => event.id,
        (a, b) => (a < b ? 1 : a > b ? -1 : 0),
        limit,
      );
      return { events, next };
    },

    /** Primary key. */
    async findDelivery(tenantId: string, ref: DeliveryRef, now: number): Promise<Delivery | null> {
      const row = await db
        .prepare(SELECT_DELIVERY)
        .bind(tenantId, ref.eventId, ref.endpointId, ref.replayNo, now)
        .first<Row>();
      return row && toDelivery(row);
    },

    /** A delivery and its attempts, oldest first, as of one moment. Primary keys. */
    async findDeliveryWithAttempts(tenantId: string, ref: DeliveryRef, now: number) {
      const key = [tenantId, ref.eventId, ref.endpointId, ref.replayNo];
      const [deliveries, attempts] = await db.batch<Row>([
        db.prepare(SELECT_DELIVERY).bind(...key, now),
        db
          .prepare(
            `select ${ATTEMPT_COLUMNS} from attempt a
             where tenant_id = ? and event_id = ? and endpoint_id = ? and replay_no = ? order by attempt_number`,
          )
          .bind(...key),
      ]);
      const row = deliveries!.results[0];
      return row ? { delivery: toDelivery(row), attempts: attempts!.results.map(toAttempt) } : null;
    },

    /** Newest first by created_at. See `deliveryWalks` for the indexes. */
    async listDeliveries(
      tenantId: string,
      filters: DeliveryFilters,
      before: DeliveryKey | null,
      limit: number,
      now: number,
    ): Promise<{ deliveries: Delivery[]; next: DeliveryKey | null }> {
      const walks = deliveryWalks(tenantId, filters, before);
      const rest = deliveryFilters(filters, now);
      const results = await db.batch<Row>(
        walks.flatMap((walk) => pageStatements(db, walk, DELIVERY_COLUMNS, DELIVERY_KEY_COLUMNS, rest, limit)),
      );
      const pages = walks.map((_, i) => ({
        rows: results[2 * i]!.results.map(toDelivery),
        stoppedAt: results[2 * i + 1]!.results.map(toDeliveryKey)[0] ?? null,
      }));
      const { rows, next } = mergePages(pages, deliveryKey, compareDeliveryKeys, limit);
      return { deliveries: rows, next };
    },
  };
}

const SELECT_DELIVERY = `select ${DELIVERY_COLUMNS} from delivery d
  where tenant_id = ? and event_id = ? and endpoint_id = ? and replay_no = ? and expires_at > ?`;
const DELIVERY_KEY_COLUMNS = "created_at, event_id, endpoint_id, replay_no";

function eventWalk(tenantId: string, filters: EventFilters, before: string | null): Walk {
  const upper = [before, filters.createdBefore === undefined ? null : firstEventIdAt(filters.createdBefore)]
    .filter((id) => id !== null)
    .toSorted()[0];
  const lower = filters.createdAfter === undefined ? undefined : firstEventIdAt(filters.createdAfter + 1);
  const bounds = [upper === undefined ? "" : " and id < ?2", lower === undefined ? "" : ` and id >= ?${upper ? 3 : 2}`];
  return {
    from: `event where tenant_id = ?1${bounds.join("")}`,
    orderBy: "id desc",
    parameters: [tenantId, ...[upper, lower].filter((id) => id !== undefined)],
  };
}

function eventFilters(filters: EventFilters, now: number): Filter[] {
  return [
    { sql: "expires_at > ?", value: now },
    ...(filters.type === undefined ? [] : [{ sql: "type = ?", value: filters.type }]),
    ...(filters.sourceId === undefined ? [] : [{ sql: "source_id = ?", value: filters.sourceId }]),
  ];
}

/**
 * How to walk a tenant's deliveries by created_at. A first delivery is as old as its event, whose id begins with its time,
 * so the primary key holds those in order; replays are younger and have an index of their own. With a subscription
 * delivery_subscription does for both; with an event its part of the primary key is all there is.
 */
function deliveryWalks(tenantId: string, filters: DeliveryFilters, before: DeliveryKey | null): Walk[] {
  const bound: DeliveryKey | null = filters.createdBefore === undefined ? null : [filters.createdBefore, "", "", 0];
  // The later of two in the order of the list, newest first, is where it begins.
  const key =
    [before, bound]
      .filter((from) => from !== null)
      .toSorted(compareDeliveryKeys)
      .at(-1) ?? LAST_KEY;
  const orderBy = "created_at desc, event_id desc, endpoint_id desc, replay_no desc";
  if (filters.eventId !== undefined || filters.subscriptionId !== undefined) {
    const [column, value] =
      filters.eventId === undefined ? ["subscription_id", filters.subscriptionId!] : ["event_id", filters.eventId];
    return [
      {
        from: `delivery where ${column} = ?1 and tenant_id = ?2 and created_at <= ?3 and created_at > ?7
          and (created_at, event_id, endpoint_id, replay_no) < (?3, ?4, ?5, ?6)`,
        orderBy,
        parameters: [value, tenantId, ...key, filters.createdAfter ?? -1],
      },
    ];
  }
  const [createdAt, eventId, endpointId, replayNo] = key;
  // Behind a replay come all first deliveries of earlier milliseconds; behind a first delivery those of smaller keys.
  const isFirst = isEventId(eventId) && eventIdTimeMs(eventId) === createdAt;
  const upper = isFirst ? eventId : firstEventIdAt(createdAt);
  const after = filters.createdAfter === undefined ? "" : firstEventIdAt(filters.createdAfter + 1);
  return [
    {
      from: `delivery where tenant_id = ?1 and (event_id, endpoint_id, 0) < (?2, ?3, ?4) and event_id <= ?2
        and event_id >= ?5 and replay_no = 0`,
      orderBy: "event_id desc, endpoint_id desc",
      parameters: [tenantId, upper, isFirst ? endpointId : "", isFirst ? replayNo : 0, after],
    },
    {
      from: `delivery where tenant_id = ?1 and replay_no > 0 and created_at <= ?2 and created_at > ?6
        and (created_at, event_id, endpoint_id, replay_no) < (?2, ?3, ?4, ?5)`,
      orderBy,
      parameters: [tenantId, ...key, filters.createdAfter ?? -1],
    },
  ];
}

const LAST_KEY: DeliveryKey = [2 ** 48 - 1, "~", "~", 0];

function deliveryFilters(filters: DeliveryFilters, now: number): Filter[] {
  const conditions: [string, string | number | undefined][] = [
    ["expires_at > ?", now],
    ["event_id = ?", filters.eventId],
    ["subscription_id = ?", filters.subscriptionId],
    ["endpoint_id = ?", filters.endpointId],
    ["status = ?", filters.status],
    ["replayed_as is null and ?", filters.isOpen ? 1 : undefined],
    ["last_error_class = ?", filters.errorClass],
    ["created_at > ?", filters.createdAfter],
    ["created_at < ?", filters.createdBefore],
    [
      "exists (select 1 from event e where e.tenant_id = d.tenant_id and e.id = d.event_id and e.type = ?)",
      filters.eventType,
    ],
  ];
  return conditions.flatMap(([sql, value]) => (value === undefined ? [] : [{ sql, value }]));
}

function deliveryKey({ createdAt, eventId, endpointId, replayNo }: Delivery): DeliveryKey {
  return [createdAt, eventId, endpointId, replayNo];
}

function toDeliveryKey(row: Row): DeliveryKey {
  return [row["created_at"], row["event_id"], row["endpoint_id"], row["replay_no"]];
}

function compareDeliveryKeys(a: DeliveryKey, b: DeliveryKey): number {
  const i = a.findIndex((part, at) => part !== b[at]);
  return i === -1 ? 0 : a[i]! < b[i]! ? 1 : -1;
}
