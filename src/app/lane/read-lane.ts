import { laneStateName, type LaneStateName } from "../../core/lane-state.ts";
import type { DeliveryRef } from "../../core/ids.ts";
import { notFound } from "../app-error.ts";
import { requireReader, type Principal } from "../principal.ts";
import type { Runtime } from "../runtime.ts";

export interface LaneHeadView extends DeliveryRef {
  orderingKey: string | null;
  status: string;
  attemptCount: number;
  /** Since when it stands first; null before its lane has let it through. */
  scheduledAt: number | null;
  blockedSince: number | null;
  nextAttemptAt: number | null;
  lastStatusCode: number | null;
  lastErrorClass: string | null;
  /** Open deliveries with this key, the head included unless it is blocked. */
  depth: number;
}

interface LaneStanding {
  orderingMode: "unordered" | "strict" | "keyed";
  pausedAt: number | null;
  disabledAt: number | null;
  quarantinedAt: number | null;
  depth: number;
  heads: LaneHeadView[];
}

export interface ReadLaneDeps extends Pick<Runtime, "now"> {
  viewLane(tenantId: string, endpointId: string, maxHeads: number, now: number): Promise<LaneStanding | null>;
}

const MAX_HEADS = 100;

/** What stands at the head of an endpoint's lane, since when, and what is behind it. */
export async function getLane(
  deps: ReadLaneDeps,
  principal: Principal,
  endpointId: string,
): Promise<LaneStanding & { state: LaneStateName }> {
  requireReader(principal);
  const now = deps.now();
  const lane = await deps.viewLane(principal.tenantId, endpointId, MAX_HEADS, now);
  if (!lane) throw notFound("endpoint");
  return { ...lane, state: laneStateName(lane, now) };
}
