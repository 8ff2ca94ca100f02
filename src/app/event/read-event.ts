import { z } from "zod";
import { payloadOfVersion } from "../../core/event-variants.ts";
import { isEventType } from "../../core/event-type.ts";
import { eventIdTimeMs, isEventId } from "../../core/ids.ts";
import type { Event } from "../../core/model.ts";
import type { Place } from "../../core/two-way.ts";
import { TEST_EVENT_TYPE } from "../../core/test-event.ts";
import { AppError, notFound } from "../app-error.ts";
import { isAsPublished } from "../payload-hash.ts";
import { Time } from "../field-schemas.ts";
import { parseInput } from "../parse-input.ts";
import { encodePlace, parseTwoWayPage, type TwoWayPage } from "../list-input.ts";
import { requireReader, type Principal } from "../principal.ts";
import type { Runtime } from "../runtime.ts";

export interface ReadEventDeps extends Pick<Runtime, "now"> {
  findEvent(tenantId: string, id: string, now: number): Promise<Event | null>;
  listEvents(
    tenantId: string,
    filters: { type?: string; sourceId?: string; createdAfter?: number; createdBefore?: number },
    from: Place<string> | null,
    limit: number,
    now: number,
  ): Promise<{ rows: Event[]; older: Place<string> | null; newer: Place<string> | null }>;
  getPayload(ref: string, size: number): Promise<Uint8Array | null>;
}

export const ListEventsInput = {
  type: z
    .string()
    .refine((type) => isEventType(type) || type === TEST_EVENT_TYPE, "is not an event type")
    .optional(),
  source_id: z.string().optional(),
  created_after: Time.optional(),
  created_before: Time.optional(),
};

export const GetEventPayloadInput = z.strictObject({
  schema_version: z
    .string()
    .regex(/^[1-9]\d{0,9}$/, "must be a whole number from 1")
    .transform(Number)
    .optional()
    .meta({ jsonSchema: { type: "integer", minimum: 1 } }),
});

export async function getEvent(
  deps: Pick<ReadEventDeps, "findEvent" | "now">,
  principal: Principal,
  id: string,
): Promise<Event> {
  requireReader(principal);
  const event = isEventId(id) ? await deps.findEvent(principal.tenantId, id, deps.now()) : null;
  if (!event) throw notFound("event");
  return event;
}

export async function getEventPayload(
  deps: ReadEventDeps,
  principal: Principal,
  id: string,
  query: unknown,
): Promise<{ event: Event; payload: Uint8Array }> {
  requireReader(principal);
  const input = parseInput(GetEventPayloadInput, query);
  const event = await getEvent(deps, principal, id);
  const schemaVersion = input.schema_version ?? event.schemaVersion;
  if (!payloadOfVersion(event, schemaVersion))
    throw new AppError("not_found", "The event does not carry this version.");
  const payload = await loadPayload(deps, event, schemaVersion);
  if (!payload) throw new AppError("not_found", "The payload of this event is no longer stored.");
  return { event, payload };
}

/** The stored bytes of a version; null when the event does not carry it, or they are erased or gone. */
export async function loadPayload(
  deps: Pick<ReadEventDeps, "getPayload">,
  event: Event,
  schemaVersion: number,
): Promise<Uint8Array | null> {
  const stored = event.payloadErasedAt === null ? payloadOfVersion(event, schemaVersion) : null;
  const payload = stored && (await deps.getPayload(stored.payloadRef, stored.payloadSize));
  // Bytes that an erasure has zeroed and not yet marked are not shown either.
  return payload && (await isAsPublished(payload, stored!.payloadSha256)) ? payload : null;
}

/** Newest first. A page may be short while more follows: only a cursor that is null says that there is nothing there. */
export async function listEvents(
  deps: ReadEventDeps,
  principal: Principal,
  query: unknown,
): Promise<TwoWayPage<Event>> {
  requireReader(principal);
  const { limit, from, ...filters } = parseTwoWayPage(query, ListEventsInput, "evt");
  const { rows, older, newer } = await deps.listEvents(
    principal.tenantId,
    {
      type: filters.type,
      sourceId: filters.source_id,
      createdAfter: filters.created_after,
      createdBefore: filters.created_before,
    },
    from && { key: from.key.id, side: from.side },
    limit,
    deps.now(),
  );
  const toCursor = ({ key, side }: Place<string>) =>
    encodePlace({ key: { createdAt: eventIdTimeMs(key), id: key }, side });
  return { data: rows, nextCursor: older && toCursor(older), prevCursor: newer && toCursor(newer) };
}
