import { notFound } from "../app-error.ts";
import { requireAdmin, type Principal } from "../principal.ts";
import type { EventTypeDeps } from "./deps.ts";

/** The type is as if it had never been registered: without schemas, scope or retired versions. */
export async function deleteEventType(
  deps: Pick<EventTypeDeps, "eventTypes">,
  principal: Principal,
  name: string,
): Promise<void> {
  requireAdmin(principal);
  if (!(await deps.eventTypes.delete(principal.tenantId, name))) throw notFound("event type");
}
