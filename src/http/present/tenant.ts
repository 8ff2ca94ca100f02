import type { Tenant } from "../../core/model.ts";
import { formatTime } from "../../core/timestamps.ts";

export function presentTenant(tenant: Tenant) {
  return {
    id: tenant.id,
    name: tenant.name,
    plan: tenant.plan,
    status: tenant.status,
    endpoint_quota: tenant.endpointQuota,
    created_at: formatTime(tenant.createdAt),
  };
}
