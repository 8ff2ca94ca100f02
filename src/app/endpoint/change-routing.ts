import { deliveryId, type DeliveryRef } from "../../core/ids.ts";
import { routeOf } from "../../core/lane.ts";
import type { Endpoint, EndpointChanges, RoutingChanges } from "../../core/model.ts";
import { notFound } from "../app-error.ts";
import type { DeliveryCall } from "../deliver/delivery-call.ts";
import type { Runtime } from "../runtime.ts";
import { untilFresh } from "../until-fresh.ts";

type Settings = Required<EndpointChanges & RoutingChanges> & Pick<Endpoint, "route" | "quarantinedAt">;

type Changes = EndpointChanges & RoutingChanges & Partial<Pick<Endpoint, "quarantinedAt">>;

export interface ChangeRoutingDeps extends Pick<Runtime, "now"> {
  endpoints: { find(tenantId: string, id: string): Promise<Endpoint | null> };
  /**
   * Changes the endpoint and, when `moves`, re-keys all its open deliveries, in one transaction. Null when the endpoint is
   * not as `revision` says; else the deliveries that queues are to do now.
   */
  changeRouting(
    tenantId: string,
    endpointId: string,
    revision: number,
    settings: Settings,
    moves: boolean,
    now: number,
  ): Promise<(DeliveryRef & { attemptCount: number })[] | null>;
  /** How many pending deliveries a move would take from there; `limit` where it is more. */
  countToMove(tenantId: string, endpointId: string, from: "queue" | "lane", limit: number): Promise<number>;
  ringLater(calls: DeliveryCall[], delayMs: number): void;
  wakeLane(lane: { tenantId: string; endpointId: string; generation: number }): void;
}

/** A move is one transaction, in which the database serves nobody else: what nobody asked for moves no more than this. */
export const MAX_MOVED = 10_000;

/**
 * The one way in which deliveries move between queues and lanes, or between lanes. A quarantine ends with whatever has a lane of
 * its own, and where a URL is given: what hung was the other one. Where too much waits it begins anew instead.
 */
export async function changeRouting(
  deps: ChangeRoutingDeps,
  tenantId: string,
  endpointId: string,
  changesOf: (current: Endpoint) => EndpointChanges & RoutingChanges,
): Promise<void> {
  await untilFresh(async () => {
    const current = await deps.endpoints.find(tenantId, endpointId);
    if (!current) throw notFound("endpoint");
    const changes = changesOf(current);
    const isFree = routeOf({ ...current, ...definedOf(changes), quarantinedAt: null }) === "queue";
    const isTriedAnew = isFree && current.quarantinedAt !== null && changes.url !== undefined;
    const quarantinedAt = isTriedAnew
      ? await tryAnew(deps, tenantId, endpointId)
      : isFree
        ? current.quarantinedAt
        : null;
    return applyRouting(deps, tenantId, current, { ...changes, quarantinedAt });
  });
}

/** Since when it is in quarantine then. */
async function tryAnew(deps: ChangeRoutingDeps, tenantId: string, endpointId: string): Promise<number | null> {
  const waiting = await deps.countToMove(tenantId, endpointId, "lane", MAX_MOVED + 1);
  return waiting > MAX_MOVED ? deps.now() : null;
}

/** Of one endpoint as it was read; null when it is not like that any more. */
export async function applyRouting(
  deps: ChangeRoutingDeps,
  tenantId: string,
  current: Endpoint,
  changes: Changes,
): Promise<true | null> {
  const endpointId = current.id;
  const settings: Endpoint = { ...current, ...definedOf(changes) };
  const route = routeOf(settings);
  const moves = route !== current.route || settings.orderingMode !== current.orderingMode;
  const { revision } = current;
  const due = await deps.changeRouting(tenantId, endpointId, revision, { ...settings, route }, moves, deps.now());
  if (due === null) return null;
  if (route === "lane") deps.wakeLane({ tenantId, endpointId, generation: current.laneGeneration });
  const calls = due.map(({ attemptCount, ...ref }) => ({
    tenantId,
    deliveryId: deliveryId(ref),
    attemptNumber: attemptCount + 1,
  }));
  if (calls.length > 0) deps.ringLater(calls, 0);
  return true;
}

function definedOf(changes: Changes): Changes {
  return Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined));
}
