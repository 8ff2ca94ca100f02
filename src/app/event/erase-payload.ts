import { storedSize } from "../../core/event-variants.ts";
import { AppError } from "../app-error.ts";
import { requireAdmin, type Principal } from "../principal.ts";
import { getEvent, type ReadEventDeps } from "./read-event.ts";
import { zeroPayload, type ZeroPayloadDeps } from "./zero-payload.ts";

export interface ErasePayloadDeps extends Pick<ReadEventDeps, "findEvent" | "now">, ZeroPayloadDeps {
  /** Says that the payload is erased and ends a part of what is pending; `hasMore` says that another may be left. */
  markErasedPart(
    tenantId: string,
    eventId: string,
    now: number,
  ): Promise<{ lanes: { endpointId: string; generation: number }[]; hasMore: boolean }>;
  wakeLane(lane: { tenantId: string; endpointId: string; generation: number }): void;
}

/**
 * Erases an event's payload for good, in all its versions: its bytes first, then the word that they are gone. Dying between
 * the two leaves an event whose bytes fail their hash, so they are shown and sent to nobody, and which is erased by doing
 * this again; the other way round the ledger would call erased what is still there. Doing it twice changes nothing.
 */
export async function eraseEventPayload(deps: ErasePayloadDeps, principal: Principal, id: string): Promise<void> {
  requireAdmin(principal);
  const { tenantId } = principal;
  const event = await getEvent(deps, principal, id);
  if (event.payloadErasedAt === null) {
    await zeroPayload(deps, event.payloadRef, storedSize(event)).catch((cause: unknown) => {
      const error = new AppError("unavailable", "The payload's store did not confirm that it is erased. Try again.");
      error.cause = cause;
      throw error;
    });
  }
  for (let hasMore = true; hasMore;) {
    const part = await deps.markErasedPart(tenantId, event.id, deps.now());
    for (const lane of part.lanes) deps.wakeLane({ tenantId, ...lane });
    hasMore = part.hasMore;
  }
}
