import type { Endpoint } from "../../core/model.ts";
import { requireAdmin, type Principal } from "../principal.ts";
import { getEndpoint } from "./read-endpoint.ts";
import type { EndpointDeps } from "./deps.ts";
import { releaseHeld, type ReleaseHeldDeps } from "./release-held.ts";

export interface SwitchEndpointDeps extends Pick<EndpointDeps, "endpoints">, ReleaseHeldDeps {
  disableEndpoint(tenantId: string, endpointId: string, reason: string, now: number): Promise<void>;
  enableEndpoint(tenantId: string, endpointId: string): Promise<void>;
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
  await releaseHeld(deps, principal.tenantId, id);
  return getEndpoint(deps, principal, id);
}
