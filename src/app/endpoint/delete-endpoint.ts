import { notFound } from "../app-error.ts";
import { requireAdmin, type Principal } from "../principal.ts";
import type { EndpointDeps } from "./deps.ts";

/** Its subscriptions go with it, and what it was still owed ends on record. History stays readable. */
export async function deleteEndpoint(
  deps: Pick<EndpointDeps, "endpoints" | "endDeliveriesOfEndpoint" | "now">,
  principal: Principal,
  id: string,
): Promise<void> {
  requireAdmin(principal);
  if (!(await deps.endpoints.delete(principal.tenantId, id, deps.now()))) throw notFound("endpoint");
  await deps.endDeliveriesOfEndpoint(principal.tenantId, id);
}
