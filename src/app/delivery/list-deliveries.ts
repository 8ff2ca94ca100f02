import { z } from "zod";
import type { DeliveryFilters } from "../../core/delivery-filters.ts";
import { SOURCE_NAME } from "../../core/grammar.ts";
import { deliveryId, isEventId, isId, parseDeliveryId } from "../../core/ids.ts";
import { DELIVERY_STATUSES, type Delivery, type PageKey } from "../../core/model.ts";
import { ERROR_CLASSES, FINAL_OUTCOMES } from "../../core/outcome.ts";
import { RELAY_SOURCE_NAME } from "../../core/relay-source.ts";
import type { DeliveryKey } from "../../core/row-keys.ts";
import type { Place } from "../../core/two-way.ts";
import { invalidField } from "../app-error.ts";
import { Time } from "../field-schemas.ts";
import { encodePlace, invalidCursor, parseTwoWayPage, type TwoWayPage } from "../list-input.ts";
import { requireReader, type Principal } from "../principal.ts";
import type { Runtime } from "../runtime.ts";

export interface ListDeliveriesDeps extends Pick<Runtime, "now"> {
  listDeliveries(
    tenantId: string,
    filters: DeliveryFilters,
    from: Place<DeliveryKey> | null,
    limit: number,
    now: number,
  ): Promise<{ rows: Delivery[]; older: Place<DeliveryKey> | null; newer: Place<DeliveryKey> | null }>;
}

const WholeNumber = (pattern: RegExp, message: string, minimum: number, maximum: number) =>
  z
    .string()
    .regex(pattern, message)
    .transform(Number)
    .pipe(z.number().min(minimum).max(maximum))
    .meta({ jsonSchema: { type: "integer", minimum, maximum } });

/** Who made an attempt: visible characters, so that nothing else is compared with a million rows. */
const Word = z.string().regex(/^[\x21-\x7e]{1,128}$/, "must be 1 to 128 visible ASCII characters");

export const ListDeliveriesInput = {
  endpoint_id: z
    .string()
    .refine((id) => isId("ep", id), "is not an endpoint id")
    .optional(),
  subscription_id: z
    .string()
    .refine((id) => isId("sub", id), "is not a subscription id")
    .optional(),
  source: z
    .string()
    .refine(
      (text) => SOURCE_NAME.test(text) || text === RELAY_SOURCE_NAME,
      "is neither the id nor the name of a source",
    )
    .optional(),
  event_id: z.string().refine(isEventId, "is not an event id").optional(),
  event_type: z.string().optional(),
  status: z.enum(DELIVERY_STATUSES).optional(),
  include_replayed: z.enum(["true", "false"]).optional(),
  error_class: z.enum(ERROR_CLASSES).optional(),
  status_code: WholeNumber(/^[1-5]\d\d$/, "must be a status from 100 to 599", 100, 599).optional(),
  final_outcome: z.enum(FINAL_OUTCOMES).optional(),
  worker_id: Word.optional(),
  relay_region: Word.optional(),
  schema_version: WholeNumber(/^[1-9]\d{0,9}$/, "must be a whole number from 1", 1, 2_147_483_647).optional(),
  created_after: Time.optional(),
  created_before: Time.optional(),
  occurred_after: Time.optional(),
  occurred_before: Time.optional(),
  terminal_after: Time.optional(),
  terminal_before: Time.optional(),
};

/**
 * Newest first; of dead letters those that are open, unless asked for all. A page may be short while more follows: only a cursor
 * that is null says that there is nothing there.
 */
export async function listDeliveries(
  deps: ListDeliveriesDeps,
  principal: Principal,
  query: unknown,
): Promise<TwoWayPage<Delivery>> {
  requireReader(principal);
  const { limit, from, ...filters } = parseTwoWayPage(query, ListDeliveriesInput, "dlv");
  const isDeadLetters = filters.status === "dead_letter";
  if (filters.include_replayed !== undefined && !isDeadLetters) {
    throw invalidField("include_replayed", "belongs to status=dead_letter");
  }
  const { rows, older, newer } = await deps.listDeliveries(
    principal.tenantId,
    {
      endpointId: filters.endpoint_id,
      subscriptionId: filters.subscription_id,
      source: filters.source,
      eventId: filters.event_id,
      eventType: filters.event_type,
      status: filters.status,
      isOpen: isDeadLetters && filters.include_replayed !== "true",
      errorClass: filters.error_class,
      statusCode: filters.status_code,
      finalOutcome: filters.final_outcome,
      workerId: filters.worker_id,
      relayRegion: filters.relay_region,
      schemaVersion: filters.schema_version,
      createdAfter: filters.created_after,
      createdBefore: filters.created_before,
      occurredAfter: filters.occurred_after,
      occurredBefore: filters.occurred_before,
      terminalAfter: filters.terminal_after,
      terminalBefore: filters.terminal_before,
    },
    from && { key: toKey(from.key), side: from.side },
    limit,
    deps.now(),
  );
  return { data: rows, nextCursor: older && toCursor(older), prevCursor: newer && toCursor(newer) };
}

function toKey({ createdAt, id }: PageKey): DeliveryKey {
  const ref = parseDeliveryId(id);
  if (!ref.ok) throw invalidCursor();
  return [createdAt, ref.value.eventId, ref.value.endpointId, ref.value.replayNo];
}

function toCursor({ key: [createdAt, eventId, endpointId, replayNo], side }: Place<DeliveryKey>): string {
  return encodePlace({ key: { createdAt, id: deliveryId({ eventId, endpointId, replayNo }) }, side });
}
