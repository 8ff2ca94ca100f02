import { notFound } from "../app-error.ts";
import { requireAdmin, type Principal } from "../principal.ts";
import type { ApiKeyDeps } from "./deps.ts";

/** Revokes the key: refused from the next request on. */
export async function deleteApiKey(deps: ApiKeyDeps, principal: Principal, id: string): Promise<void> {
  requireAdmin(principal);
  if (!(await deps.apiKeys.revoke(principal.tenantId, id, deps.now()))) throw notFound("API key");
}
