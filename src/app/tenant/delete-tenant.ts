import { notFound } from "../app-error.ts";
import type { TenantDeps } from "./deps.ts";

/** Ends the tenant, its keys and all of its configuration at once. What it published and delivered stays on record. */
export async function deleteTenant(deps: TenantDeps, id: string): Promise<void> {
  const entry = await deps.directory.find(id);
  const deleted = entry && (await deps.tenantStore(entry.shard).delete(id, deps.now()));
  if (!deleted) throw notFound("tenant");
}
