import type { Endpoint } from "../../core/model.ts";
import { notFound } from "../app-error.ts";
import { requireAdmin, type Principal } from "../principal.ts";
import { getLane, type ReadLaneDeps } from "./read-lane.ts";

export interface MoveLaneDeps extends ReadLaneDeps {
  endpoints: { find(tenantId: string, id: string): Promise<Endpoint | null> };
  moveLane(tenantId: string, endpointId: string): Promise<boolean>;
  wakeLane(lane: { tenantId: string; endpointId: string; generation: number }): void;
}

/**
 * Moves an endpoint's lane to a new object, under traffic: for one that is stuck, or stands far from the ledger. The old
 * object finishes what it has under way and is given no claim any more, so order holds throughout.
 */
export async function moveLane(deps: MoveLaneDeps, principal: Principal, endpointId: string) {
  requireAdmin(principal);
  const { tenantId } = principal;
  if (!(await deps.moveLane(tenantId, endpointId))) throw notFound("endpoint");
  const endpoint = await deps.endpoints.find(tenantId, endpointId);
  if (endpoint?.route === "lane") deps.wakeLane({ tenantId, endpointId, generation: endpoint.laneGeneration });
  return getLane(deps, principal, endpointId);
}
