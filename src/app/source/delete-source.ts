import { notFound } from "../app-error.ts";
import { requireAdmin, type Principal } from "../principal.ts";
import type { SourceDeps } from "./deps.ts";

/** Its publish keys are revoked with it; its events and their deliveries go on. */
export async function deleteSource(deps: SourceDeps, principal: Principal, id: string): Promise<void> {
  requireAdmin(principal);
  if (!(await deps.sources.delete(principal.tenantId, id, deps.now()))) throw notFound("source");
}
