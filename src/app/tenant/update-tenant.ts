import { z } from "zod";
import type { Tenant, TenantChanges } from "../../core/model.ts";
import { notFound } from "../app-error.ts";
import { DisplayName } from "../field-schemas.ts";
import { parseInput } from "../parse-input.ts";
import { CreateTenantInput } from "./create-tenant.ts";
import type { TenantDeps } from "./deps.ts";
import { getTenant } from "./read-tenant.ts";
import { releaseTenant } from "./release-tenant.ts";

export const UpdateTenantInput = z.strictObject({
  name: DisplayName.optional(),
  plan: CreateTenantInput.shape.plan.unwrap().optional(),
  status: CreateTenantInput.shape.status.unwrap().optional(),
  endpoint_quota: CreateTenantInput.shape.endpoint_quota,
  require_registered_types: z.boolean().optional(),
});
export type UpdateTenantInput = z.infer<typeof UpdateTenantInput>;

/**
 * Once `suspended` has answered nothing is accepted and no attempt starts; nothing is lost. `active` lets everything go on,
 * and finishes what an interrupted one left. A quota below what there is only stops new ones.
 */
export async function updateTenant(deps: TenantDeps, id: string, body: unknown): Promise<Tenant> {
  const input = parseInput(UpdateTenantInput, body);
  const present = await getTenant(deps, id);
  const { name, plan, status, endpoint_quota: endpointQuota, require_registered_types: requireRegisteredTypes } = input;
  const changes: TenantChanges = { name, plan, status, endpointQuota, requireRegisteredTypes };
  if (Object.values(changes).every((value) => value === undefined)) return present;
  const updated = await deps.tenantStore(present.shard).update(id, changes, deps.now());
  if (!updated) throw notFound("tenant");
  if (status === "active") await releaseTenant(deps.tenantWork(present.shard), id);
  return updated;
}
