import type { DeliveryRef } from "../../core/ids.ts";
import type { Delivery, Event } from "../../core/model.ts";
import {
  ATTEMPT_COLUMNS,
  DELIVERY_COLUMNS,
  EVENT_COLUMNS,
  toAttempt,
  toDelivery,
  toEvent,
  type Row,
} from "./read-rows.ts";

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
  };
}

const SELECT_DELIVERY = `select ${DELIVERY_COLUMNS} from delivery d
  where tenant_id = ? and event_id = ? and endpoint_id = ? and replay_no = ? and expires_at > ?`;
