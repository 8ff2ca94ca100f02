import type { DeliveryRef } from "../../core/ids.ts";
import type { Delivery, Event } from "../../core/model.ts";
import type { Place } from "../../core/two-way.ts";
import { firstEventIdAt } from "../../core/ids.ts";
import { compareKeys, type AttemptKey } from "../../core/row-keys.ts";
import { REACH, type Listed } from "./paging.ts";
import { DELIVERY_COLUMNS, EVENT_COLUMNS, toDelivery, toEvent, type Row } from "./read-rows.ts";
import { readTwoWay, readWalks, type Reading } from "./two-way-list.ts";

/** Rows of a tenant's configuration that a look-up goes through: living ones there are fewer of. */
const MAX_SOURCES = 2_000;
const MAX_ENDPOINTS = 12_000;

/** What is found, by key; `isWhole` when there is no more of it. */
export interface Found<Key> {
  keys: Key[];
  isWhole: boolean;
}

const KEY = ["event_id", "endpoint_id", "replay_no", "attempt_number"];
const ATTEMPTS: Listed = {
  table: "attempt",
  key: KEY,
  identity: KEY,
  columns: KEY.map((name) => `d.${name}`).join(", "),
};

const toAttemptKey = (row: Row): AttemptKey => [
  row["event_id"],
  row["endpoint_id"],
  row["replay_no"],
  row["attempt_number"],
];

const READING: Reading<AttemptKey, AttemptKey> = {
  row: toAttemptKey,
  key: toAttemptKey,
  keyOf: (key) => key,
  compare: (a, b) => compareKeys(b, a),
};

/** Look-ups by what somebody was handed. What has expired is dropped by `loadEvents`. */
export function createFindLedger(db: D1Database, reach = REACH) {
  return {
    /** The tenant's sources by primary key, and event_idempotency once for each. */
    async findByIdempotencyKey(tenantId: string, key: string): Promise<Found<string>> {
      const [counted, found] = await db.batch<Row>([
        db
          .prepare(`select count(*) as n from (select 1 from source where tenant_id = ? limit ${MAX_SOURCES + 1})`)
          .bind(tenantId),
        db
          .prepare(
            `select e.id from (select id from source where tenant_id = ?1 limit ${MAX_SOURCES}) s
             cross join event e on e.source_id = s.id and e.idempotency_key = ?2 and e.idempotency_key is not null
               and e.tenant_id = ?1`,
          )
          .bind(tenantId, key),
      ]);
      return { keys: found!.results.map((row) => row["id"]), isWhole: counted!.results[0]!["n"] <= MAX_SOURCES };
    },

    /** Attempts that did not succeed: attempt_partner_request. */
    async findFailedByPartnerRequest(
      tenantId: string,
      partnerRequestId: string,
      after: AttemptKey | null,
      limit: number,
    ): Promise<Found<AttemptKey>> {
      const key = KEY.join(", ");
      const behind = after ? ` and (${key}) < (?, ?, ?, ?)` : "";
      const { results } = await db
        .prepare(
          `select ${key} from attempt indexed by attempt_partner_request where tenant_id = ? and partner_request_id = ? and partner_request_id is not null
             and outcome_class <> 'success'${behind}
           order by ${KEY.map((name) => `${name} desc`).join(", ")} limit ${limit + 1}`,
        )
        .bind(tenantId, partnerRequestId, ...(after ?? []))
        .all<Row>();
      return { keys: results.slice(0, limit).map(toAttemptKey), isWhole: results.length <= limit };
    },

    /** Successes among the attempts for events of a time, newest event first: the primary key. */
    async findSuccessByPartnerRequest(
      tenantId: string,
      partnerRequestId: string,
      time: { from: number; until: number },
      after: AttemptKey | null,
      limit: number,
    ): Promise<{ keys: AttemptKey[]; rest: AttemptKey | null }> {
      const filters = [
        {
          sql: "d.partner_request_id = ? and d.outcome_class = 'success'",
          values: [partnerRequestId],
          columns: ["partner_request_id", "outcome_class"],
        },
      ];
      const from: Place<AttemptKey> | null = after && { key: after, side: "older" };
      const { rows, older } = await readTwoWay(READING, { tenantId, from, limit, reach }, (page) => {
        const key = page.from?.key;
        const behind = key ? ` and event_id <= ? and (${KEY.join(", ")}) < (?, ?, ?, ?)` : " and event_id < ?";
        const walk = {
          sql: `attempt where tenant_id = ? and event_id >= ?${behind}`,
          values: [tenantId, firstEventIdAt(time.from), ...(key ? [key[0], ...key] : [firstEventIdAt(time.until)])],
          order: KEY,
          readsEach: 2,
        };
        return readWalks(db, ATTEMPTS, READING, [walk], filters, page);
      });
      return { keys: rows, rest: older && older.key };
    },

    /** Events of which a delivery is open in a lane of this key: of each keyed endpoint delivery_lane. */
    async findOpenInLanes(tenantId: string, orderingKey: string, limit: number): Promise<Found<string>> {
      const endpoints = "select id, ordering_mode from endpoint where tenant_id = ?1 and deleted_at is null";
      const [counted, found] = await db.batch<Row>([
        db.prepare(`select count(*) as n from (${endpoints} limit ${MAX_ENDPOINTS + 1})`).bind(tenantId),
        db
          .prepare(
            `select d.event_id from (${endpoints} limit ${MAX_ENDPOINTS}) e
             cross join delivery d indexed by delivery_lane on d.endpoint_id = e.id and d.lane_key = ?2
               and d.terminal_at is null and d.lane_key is not null
             where e.ordering_mode = 'keyed' limit ${limit + 1}`,
          )
          .bind(tenantId, orderingKey),
      ]);
      const ids = found!.results.map((row) => row["event_id"] as string);
      const isWhole = ids.length <= limit && counted!.results[0]!["n"] <= MAX_ENDPOINTS;
      return { keys: [...new Set(ids.slice(0, limit))], isWhole };
    },

    /** Those of these events that have not expired. Primary key. */
    async loadEvents(tenantId: string, ids: string[], now: number): Promise<Event[]> {
      const { results } = await db
        .prepare(
          `select ${EVENT_COLUMNS} from json_each(?2) j cross join event d on d.tenant_id = ?1 and d.id = j.value
           where d.expires_at > ?3`,
        )
        .bind(tenantId, JSON.stringify(ids), now)
        .all<Row>();
      return results.map(toEvent);
    },

    /** Of each event, or of each of its endpoints, the first `limit` deliveries in the order of the primary key, backwards. */
    async loadDeliveries(
      tenantId: string,
      parts: (Pick<DeliveryRef, "eventId"> & Partial<DeliveryRef>)[],
      limit: number,
      now: number,
    ): Promise<Delivery[][]> {
      if (parts.length === 0) return [];
      const results = await db.batch<Row>(
        parts.map(({ eventId, endpointId, replayNo }) => {
          const key = [tenantId, eventId, endpointId, replayNo].filter((part) => part !== undefined);
          const columns = ["tenant_id", "event_id", "endpoint_id", "replay_no"].slice(0, key.length);
          const is = columns.map((column) => `d.${column} = ?`).join(" and ");
          return db
            .prepare(
              `select ${DELIVERY_COLUMNS} from delivery d where ${is} and d.expires_at > ?
               order by d.event_id desc, d.endpoint_id desc, d.replay_no desc limit ${limit}`,
            )
            .bind(...key, now);
        }),
      );
      return results.map(({ results: rows }) => rows.map(toDelivery));
    },
  };
}
