import { z } from "zod";
import type { Tenant } from "../../core/model.ts";
import { formatTime } from "../../core/timestamps.ts";
import { presentTime } from "./time.ts";
import { ANSWERS } from "../openapi/registries.ts";
import { id, time } from "./fields.ts";

export const TenantAnswer = z
  .object({
    id: id("ten"),
    name: z.string(),
    plan: z.enum(["free", "pro", "enterprise"]),
    status: z.enum(["active", "suspended"]),
    endpoint_quota: z.int().nullable(),
    header_prefix: z.string().nullable(),
    require_registered_types: z.boolean(),
    suspended_at: time.nullable(),
    created_at: time,
  })
  .register(ANSWERS, { id: "Tenant" });
type TenantAnswer = z.infer<typeof TenantAnswer>;

export function presentTenant(tenant: Tenant): TenantAnswer {
  return {
    id: tenant.id,
    name: tenant.name,
    plan: tenant.plan,
    status: tenant.status,
    endpoint_quota: tenant.endpointQuota,
    header_prefix: tenant.headerPrefix,
    require_registered_types: tenant.requireRegisteredTypes,
    suspended_at: presentTime(tenant.suspendedAt),
    created_at: formatTime(tenant.createdAt),
  };
}
