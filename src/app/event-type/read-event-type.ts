import type { EventType } from "../../core/model.ts";
import { notFound } from "../app-error.ts";
import { parsePage, readPage, type Page } from "../list-input.ts";
import { requireReader, type Principal } from "../principal.ts";
import type { EventTypeDeps } from "./deps.ts";

type ReadEventTypeDeps = Pick<EventTypeDeps, "eventTypes">;

/** What the cursors of this list begin with, where those of others have an id's prefix. */
const CURSOR_PREFIX = "type";

export async function getEventType(deps: ReadEventTypeDeps, principal: Principal, name: string): Promise<EventType> {
  requireReader(principal);
  const eventType = await deps.eventTypes.find(principal.tenantId, name);
  if (!eventType) throw notFound("event type");
  return eventType;
}

export async function listEventTypes(
  deps: ReadEventTypeDeps,
  principal: Principal,
  query: unknown,
): Promise<Page<EventType>> {
  requireReader(principal);
  return readPage(
    parsePage(query, {}, CURSOR_PREFIX),
    ({ limit, after }) => {
      const name = after?.id.slice(CURSOR_PREFIX.length + 1);
      return deps.eventTypes.page(principal.tenantId, { limit, after: after && { ...after, id: name! } });
    },
    ({ createdAt, name }) => ({ createdAt, id: `${CURSOR_PREFIX}_${name}` }),
  );
}
