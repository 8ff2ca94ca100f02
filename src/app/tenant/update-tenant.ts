import { z } from "zod";
import type { Tenant, TenantChanges } from "../../core/model.ts";
import { invalidField, notFound } from "../app-error.ts";
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
  header_prefix: CreateTenantInput.shape.header_prefix,
  require_registered_types: z.boolean().optional(),
});
export type UpdateTenantInput = z.infer<typeof UpdateTenantInput>;

/**
 * Once `suspended` has answered nothing is accepted and no attempt starts; nothing is lost. `active` lets everything go on,
 * and finishes what an interrupted one left. A quota below what there is only stops new ones. A prefix is refused where an
 * endpoint has a header of its own under it; what two requests at the same moment leave is settled at each send.
 */
export async function updateTenant(deps: TenantDeps, id: string, body: unknown): Promise<Tenant> {
  const input = parseInput(UpdateTenantInput, body);
  const present = await getTenant(deps, id);
  const { name, plan, status, endpoint_quota: endpointQuota, header_prefix: headerPrefix } = input;
  const { require_registered_types: requireRegisteredTypes } = input;
  const changes: TenantChanges = { name, plan, status, endpointQuota, headerPrefix, requireRegisteredTypes };
  if (Object.values(changes).every((value) => value === undefined)) return present;
  const store = deps.tenantStore(present.shard);
  if (typeof headerPrefix === "string") {
    const taken = await store.findHeaderUnder(id, headerPrefix);
    if (taken) {
      const message = `is how a header of ${taken.endpointId} begins, ${taken.name}: it would be taken for the relay's`;
      throw invalidField("header_prefix", message);
    }
  }
  const updated = await store.update(id, changes, deps.now());
  if (!updated) throw notFound("tenant");
  if (status === "active") await releaseTenant(deps.tenantWork(present.shard), id);
  return updated;
}
