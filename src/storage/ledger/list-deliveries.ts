import { isOpenStatus, statusesOf, type DeliveryFilters } from "../../core/delivery-filters.ts";
import type { Delivery } from "../../core/model.ts";
import { compareKeys, type DeliveryKey } from "../../core/row-keys.ts";
import type { Place } from "../../core/two-way.ts";
import { deliveryFilters, isIndexed } from "./delivery-filters.ts";
import {
  DELIVERIES,
  openStatements,
  spanOf,
  walkOfEvent,
  walkOfStatus,
  walkOfSubscription,
  walksOfTenant,
  type Span,
} from "./delivery-walks.ts";
import { REACH, type Filter, type Walk } from "./paging.ts";
import { toDelivery, type Row } from "./read-rows.ts";
import {
  readParts,
  readTwoWay,
  readWalks,
  walkStatements,
  type Page,
  type Part,
  type Reading,
  type TwoWayRows,
} from "./two-way-list.ts";

/** An endpoint with more subscriptions, deleted ones too, is listed among all of its tenant. */
const MAX_SUBSCRIPTIONS = 16;

const READING: Reading<Delivery, DeliveryKey> = {
  row: toDelivery,
  key: (row) => [row["created_at"], row["event_id"], row["endpoint_id"], row["replay_no"]],
  keyOf: ({ createdAt, eventId, endpointId, replayNo }) => [createdAt, eventId, endpointId, replayNo],
  compare: (a, b) => compareKeys(b, a),
};

/** What a list sees of an expired row: nothing. */
export function createListDeliveriesLedger(db: D1Database, reach = REACH) {
  /** For any filters: the event's part of the primary key, parts of delivery_subscription, or all of a tenant. */
  async function readAny(filters: DeliveryFilters, conditions: Filter[], page: Page<DeliveryKey>) {
    const walks = await walksOfAny(page.tenantId, filters, spanOf(filters, page.from));
    return readWalks(db, DELIVERIES, READING, walks, conditions, page);
  }

  async function walksOfAny(tenantId: string, filters: DeliveryFilters, span: Span): Promise<Walk[]> {
    if (filters.eventId !== undefined) return [walkOfEvent(tenantId, filters.eventId, span)];
    if (filters.subscriptionId !== undefined) return [walkOfSubscription(tenantId, filters.subscriptionId, span)];
    if (filters.endpointId === undefined) return walksOfTenant(tenantId, span);
    // subscription_endpoint, which has those that are deleted too.
    const { results } = await db
      .prepare("select id from subscription where endpoint_id = ? and +tenant_id = ? limit ?")
      .bind(filters.endpointId, tenantId, MAX_SUBSCRIPTIONS + 1)
      .all<Row>();
    if (results.length > MAX_SUBSCRIPTIONS) return walksOfTenant(tenantId, span);
    return results.map((row) => walkOfSubscription(tenantId, row["id"], span));
  }

  /**
   * For filters that no success passes, all in one moment: what has ended by delivery_unsuccessful, and what is open by
   * delivery_due and delivery_lane, put in order here. Null when too much is open for that.
   */
  async function readUnsuccessful(
    filters: DeliveryFilters,
    conditions: Filter[],
    page: Page<DeliveryKey>,
  ): Promise<Part<Delivery, DeliveryKey> | null> {
    const span = spanOf(filters, page.from);
    const statuses = statusesOf(filters);
    const walks = statuses
      .filter((status) => !isOpenStatus(status))
      .map((status) => walkOfStatus(page.tenantId, status, span, isIndexed(conditions)));
    const open = statuses.some(isOpenStatus) ? openStatements(db, filters.endpointId, conditions, span, page) : [];
    const statements = [...open, ...walkStatements(db, DELIVERIES, walks, conditions, page)];
    if (statements.length === 0) return { rows: [], rest: null };
    const results = await db.batch<Row>(statements);
    const [counted, found] = results.slice(0, open.length);
    if (counted?.results.some((row) => row["n"] > reach.maxOpen)) return null;
    return readParts(READING, results.slice(open.length), page, found?.results.map(toDelivery));
  }

  return {
    /** Newest first by created_at, or back, by whichever index has to look at the least. */
    async listDeliveries(
      tenantId: string,
      filters: DeliveryFilters,
      from: Place<DeliveryKey> | null,
      limit: number,
      now: number,
    ): Promise<TwoWayRows<Delivery, DeliveryKey>> {
      const conditions = deliveryFilters(tenantId, filters, now);
      const isUnsuccessful = filters.eventId === undefined && !statusesOf(filters).includes("succeeded");
      return readTwoWay(READING, { tenantId, from, limit, reach }, async (page) => {
        const part = isUnsuccessful ? await readUnsuccessful(filters, conditions, page) : null;
        return part ?? readAny(filters, conditions, page);
      });
    },
  };
}
