import { z } from "zod";
import { encodeCursor } from "../../core/cursor.ts";
import { deliveryId, isEventId, isId, parseDeliveryId, type DeliveryRef } from "../../core/ids.ts";
import { DELIVERY_STATUSES, type Attempt, type Delivery } from "../../core/model.ts";
import { ERROR_CLASSES } from "../../core/outcome.ts";
import { invalidField, notFound } from "../app-error.ts";
import { Time } from "../field-schemas.ts";
import { parsePage, type Page } from "../list-input.ts";
import { requireReader, type Principal } from "../principal.ts";
import type { Runtime } from "../runtime.ts";

type DeliveryKey = [createdAt: number, eventId: string, endpointId: string, replayNo: number];

export interface ReadDeliveryDeps extends Pick<Runtime, "now"> {
  findDelivery(tenantId: string, ref: DeliveryRef, now: number): Promise<Delivery | null>;
  findDeliveryWithAttempts(
    tenantId: string,
    ref: DeliveryRef,
    now: number,
  ): Promise<{ delivery: Delivery; attempts: Attempt[] } | null>;
  listDeliveries(
    tenantId: string,
    filters: {
      endpointId?: string;
      subscriptionId?: string;
      eventId?: string;
      eventType?: string;
      status?: string;
      /** Those that have no replay. */
      isOpen?: boolean;
      errorClass?: string;
      createdAfter?: number;
      createdBefore?: number;
    },
    before: DeliveryKey | null,
    limit: number,
    now: number,
  ): Promise<{ deliveries: Delivery[]; next: DeliveryKey | null }>;
}

export const ListDeliveriesInput = {
  endpoint_id: z
    .string()
    .refine((id) => isId("ep", id), "is not an endpoint id")
    .optional(),
  subscription_id: z
    .string()
    .refine((id) => isId("sub", id), "is not a subscription id")
    .optional(),
  event_id: z.string().refine(isEventId, "is not an event id").optional(),
  event_type: z.string().optional(),
  status: z.enum(DELIVERY_STATUSES).optional(),
  include_replayed: z.enum(["true", "false"]).optional(),
  error_class: z.enum(ERROR_CLASSES).optional(),
  created_after: Time.optional(),
  created_before: Time.optional(),
};

export async function getDelivery(
  deps: ReadDeliveryDeps,
  principal: Principal,
  id: string,
): Promise<{ delivery: Delivery; attempts: Attempt[] }> {
  requireReader(principal);
  const ref = parseDeliveryId(id);
  const found = ref.ok ? await deps.findDeliveryWithAttempts(principal.tenantId, ref.value, deps.now()) : null;
  if (!found) throw notFound("delivery");
  return found;
}

/** The delivery behind an id; 404 for one of nothing, of another tenant, or expired. */
export async function findDelivery(
  deps: Pick<ReadDeliveryDeps, "findDelivery" | "now">,
  principal: Principal,
  id: string,
): Promise<Delivery> {
  const ref = parseDeliveryId(id);
  const delivery = ref.ok ? await deps.findDelivery(principal.tenantId, ref.value, deps.now()) : null;
  if (!delivery) throw notFound("delivery");
  return delivery;
}

/**
 * Newest first; of dead letters those that are open, unless asked for all. A page may be short while more follows: `nextCursor`
 * says whether there is more.
 */
export async function listDeliveries(
  deps: ReadDeliveryDeps,
  principal: Principal,
  query: unknown,
): Promise<Page<Delivery>> {
  requireReader(principal);
  const { limit, after, ...filters } = parsePage(query, ListDeliveriesInput, "dlv");
  const isDeadLetters = filters.status === "dead_letter";
  if (filters.include_replayed !== undefined && !isDeadLetters) {
    throw invalidField("include_replayed", "belongs to status=dead_letter");
  }
  const { deliveries, next } = await deps.listDeliveries(
    principal.tenantId,
    {
      endpointId: filters.endpoint_id,
      subscriptionId: filters.subscription_id,
      eventId: filters.event_id,
      eventType: filters.event_type,
      status: filters.status,
      isOpen: isDeadLetters && filters.include_replayed !== "true",
      errorClass: filters.error_class,
      createdAfter: filters.created_after,
      createdBefore: filters.created_before,
    },
    after && toKey(after),
    limit,
    deps.now(),
  );
  return { data: deliveries, nextCursor: next && toCursor(next) };
}

function toKey({ createdAt, id }: { createdAt: number; id: string }): DeliveryKey {
  const ref = parseDeliveryId(id);
  if (!ref.ok) throw invalidField("cursor", "is not a cursor that a list gave out");
  return [createdAt, ref.value.eventId, ref.value.endpointId, ref.value.replayNo];
}

function toCursor([createdAt, eventId, endpointId, replayNo]: DeliveryKey): string {
  return encodeCursor([createdAt, deliveryId({ eventId, endpointId, replayNo })]);
}
