import { z } from "zod";
import type { Tenant } from "../../core/model.ts";
import { notFound } from "../app-error.ts";
import { DisplayName } from "../field-schemas.ts";
import { notSupported, onlySupported, parseInput } from "../parse-input.ts";
import type { TenantDeps } from "./deps.ts";
import { getTenant } from "./read-tenant.ts";

export const UpdateTenantInput = z.strictObject({
  name: DisplayName.optional(),
  plan: onlySupported("free"),
  status: onlySupported("active"),
  endpoint_quota: notSupported(),
});
export type UpdateTenantInput = z.infer<typeof UpdateTenantInput>;

export async function updateTenant(deps: TenantDeps, id: string, body: unknown): Promise<Tenant> {
  const input = parseInput(UpdateTenantInput, body);
  const present = await getTenant(deps, id);
  if (input.name === undefined) return present;
  const updated = await deps.tenantStore(present.shard).update(id, { name: input.name });
  if (!updated) throw notFound("tenant");
  return updated;
}
