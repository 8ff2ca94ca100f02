import type { Tenant } from "../../core/model.ts";
import { formatTime } from "../../core/timestamps.ts";
import { presentTime } from "./time.ts";

export function presentTenant(tenant: Tenant) {
  return {
    id: tenant.id,
    name: tenant.name,
    plan: tenant.plan,
    status: tenant.status,
    endpoint_quota: tenant.endpointQuota,
    suspended_at: presentTime(tenant.suspendedAt),
    created_at: formatTime(tenant.createdAt),
  };
}
