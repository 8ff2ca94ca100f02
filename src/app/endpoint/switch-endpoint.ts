import type { Endpoint } from "../../core/model.ts";
import { requireAdmin, type Principal } from "../principal.ts";
import { getEndpoint } from "./read-endpoint.ts";
import type { EndpointDeps } from "./deps.ts";
import { releaseHeld, type ReleaseHeldDeps } from "./release-held.ts";

export interface SwitchEndpointDeps extends Pick<EndpointDeps, "endpoints">, ReleaseHeldDeps {
  disableEndpoint(tenantId: string, endpointId: string, reason: string, now: number): Promise<void>;
  enableEndpoint(tenantId: string, endpointId: string): Promise<void>;
  /** Pauses with a time, ends the pause with null. */
  pauseEndpoint(tenantId: string, endpointId: string, pausedAt: number | null, now: number): Promise<void>;
  wakeLane(lane: { tenantId: string; endpointId: string; generation: number }): void;
}

/**
 * Once this has answered no attempt starts. What is pending is held with its clock running; events accepted meanwhile get
 * deliveries born `failed`. Doing it again changes nothing.
 */
export async function disableEndpoint(deps: SwitchEndpointDeps, principal: Principal, id: string): Promise<Endpoint> {
  requireAdmin(principal);
  await deps.disableEndpoint(principal.tenantId, id, "operator", deps.now());
  return getEndpoint(deps, principal, id);
}

/** What was held is due again. Doing it again finishes what an interrupted one left. */
export async function enableEndpoint(deps: SwitchEndpointDeps, principal: Principal, id: string): Promise<Endpoint> {
  requireAdmin(principal);
  await deps.enableEndpoint(principal.tenantId, id);
  return goOn(deps, principal, id);
}

/** Once this has answered no attempt starts. Nothing is lost and no clock runs until the resume. */
export async function pauseEndpoint(deps: SwitchEndpointDeps, principal: Principal, id: string): Promise<Endpoint> {
  requireAdmin(principal);
  const now = deps.now();
  await deps.pauseEndpoint(principal.tenantId, id, now, now);
  return getEndpoint(deps, principal, id);
}

/** What was held goes on, in order where the endpoint asks for order. */
export async function resumeEndpoint(deps: SwitchEndpointDeps, principal: Principal, id: string): Promise<Endpoint> {
  requireAdmin(principal);
  await deps.pauseEndpoint(principal.tenantId, id, null, deps.now());
  return goOn(deps, principal, id);
}

async function goOn(deps: SwitchEndpointDeps, principal: Principal, id: string): Promise<Endpoint> {
  const { tenantId } = principal;
  await releaseHeld(deps, tenantId, id);
  const endpoint = await getEndpoint(deps, principal, id);
  if (endpoint.route === "lane") deps.wakeLane({ tenantId, endpointId: id, generation: endpoint.laneGeneration });
  return endpoint;
}
