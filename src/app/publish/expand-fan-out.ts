import { FAN_OUT_OVERDUE_MS, type FanOutPart } from "../../core/fan-out.ts";
import { deliveryId, firstEventIdAt } from "../../core/ids.ts";
import type { DeliveryCall } from "../deliver/delivery-call.ts";
import { retrying } from "../retrying.ts";
import type { Runtime } from "../runtime.ts";

/** An event of which not all deliveries were written by its commit. */
export interface FanOutRef {
  tenantId: string;
  eventId: string;
}

type TenantPart = FanOutPart & { tenantId: string };

export interface ExpandFanOutDeps extends Pick<Runtime, "now" | "sleep"> {
  /** The first part of an event that is open; null when none is. */
  findOpenPart(fanOut: FanOutRef): Promise<TenantPart | null>;
  /**
   * Makes deliveries of a part in one batch: it is no longer open, and the event is dispatched when it was the last. Done
   * again, or by two at once, it changes nothing. Gives back the event's next open part.
   */
  expandPart(part: TenantPart, now: number): Promise<TenantPart | null>;
  /** Open parts of events with ids before `beforeId`, of all tenants, oldest first. */
  listOpenParts(beforeId: string, limit: number): Promise<TenantPart[]>;
  /** Rings for first attempts: never fails, never waits for the queue. */
  announce(calls: DeliveryCall[]): void;
  logFault(what: string, error: unknown): void;
}

/** Parts that one tick of the watchdog expands. */
const PARTS_AT_ONCE = 5;

/**
 * Makes the deliveries that an event owes beyond its commit, and rings for them, part by part. Whoever dies between two parts
 * leaves the rest to the next doorbell or to the watchdog; between the batch and the ring it leaves rows that are due.
 * Throws when the ledger refuses.
 */
export async function expandFanOut(deps: ExpandFanOutDeps, fanOut: FanOutRef): Promise<void> {
  let part = await deps.findOpenPart(fanOut);
  while (part !== null) part = await expandPart(deps, part);
}

/** Expands what nobody came for, a bounded number of parts. Says whether there may be more. */
export async function expandOverdue(deps: ExpandFanOutDeps, now: number): Promise<boolean> {
  const parts = await deps.listOpenParts(firstEventIdAt(now - FAN_OUT_OVERDUE_MS), PARTS_AT_ONCE);
  let expanded = 0;
  for (const part of parts) {
    try {
      await expandPart(deps, part);
      expanded++;
    } catch (error) {
      // One that cannot be expanded must not keep those behind it.
      deps.logFault("expand a fan-out", error);
    }
  }
  return expanded === PARTS_AT_ONCE;
}

async function expandPart(deps: ExpandFanOutDeps, part: TenantPart): Promise<TenantPart | null> {
  const { tenantId, eventId } = part;
  const next = await retrying(deps.sleep, () => deps.expandPart(part, deps.now()));
  // Also when somebody else was faster, who may have died before it rang: a second doorbell is dropped.
  deps.announce(
    part.deliveries.flatMap(([endpointId, , , versionFault]) =>
      (versionFault ?? null) === null
        ? { tenantId, deliveryId: deliveryId({ eventId, endpointId, replayNo: 0 }), attemptNumber: 1 }
        : [],
    ),
  );
  return next;
}
