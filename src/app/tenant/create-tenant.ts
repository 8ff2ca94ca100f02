import { z } from "zod";
import { HEADER_PREFIX, isHeaderPrefix } from "../../core/header-prefix.ts";
import { createId } from "../../core/ids.ts";
import type { Tenant } from "../../core/model.ts";
import { DisplayName } from "../field-schemas.ts";
import { parseInput } from "../parse-input.ts";
import type { TenantDeps } from "./deps.ts";

const MAX_ENDPOINT_QUOTA = 1_000_000;

const HeaderPrefix = z
  .string()
  .regex(HEADER_PREFIX, {
    error: "must be 3 to 32 letters, digits and hyphens: words that each end in a hyphen, as X-Acme-",
    abort: true,
  })
  .refine(isHeaderPrefix, "is a prefix of headers that are somebody else's");

export const CreateTenantInput = z.strictObject({
  name: DisplayName,
  plan: z.enum(["free", "pro", "enterprise"]).default("free"),
  status: z.enum(["active", "suspended"]).default("active"),
  endpoint_quota: z.int().min(0).max(MAX_ENDPOINT_QUOTA).nullish(),
  header_prefix: HeaderPrefix.nullish(),
  require_registered_types: z.boolean().default(false),
});
export type CreateTenantInput = z.infer<typeof CreateTenantInput>;

/** For the operator, like all that is done to tenants; the caller has checked that it is. */
export async function createTenant(deps: TenantDeps, body: unknown): Promise<Tenant> {
  const input = parseInput(CreateTenantInput, body);
  const shard = deps.shards[Math.floor(deps.random() * deps.shards.length)];
  if (shard === undefined) throw new Error("No shard is configured.");
  const now = deps.now();
  const tenant: Tenant = {
    id: createId("ten", deps.randomBytes(10)),
    name: input.name,
    plan: input.plan,
    status: input.status,
    endpointQuota: input.endpoint_quota ?? null,
    headerPrefix: input.header_prefix ?? null,
    requireRegisteredTypes: input.require_registered_types,
    suspendedAt: input.status === "suspended" ? now : null,
    shard,
    createdAt: now,
  };
  // In this order a crash between the two leaves a row that nothing points to, never a tenant without a row.
  await deps.tenantStore(shard).insert(tenant);
  await deps.directory.add({ tenantId: tenant.id, shard, createdAt: tenant.createdAt });
  return tenant;
}
