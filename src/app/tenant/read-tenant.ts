import type { Tenant } from "../../core/model.ts";
import { notFound } from "../app-error.ts";
import { parsePage, readPage, type Page } from "../list-input.ts";
import type { TenantDeps } from "./deps.ts";

export async function getTenant(deps: TenantDeps, id: string): Promise<Tenant> {
  const entry = await deps.directory.find(id);
  const tenant = entry && (await deps.tenantStore(entry.shard).find(id));
  if (!tenant) throw notFound("tenant");
  return tenant;
}

/** A page may hold fewer tenants than its limit: deleted ones keep their place in the directory. */
export async function listTenants(deps: TenantDeps, query: unknown): Promise<Page<Tenant>> {
  const entries = await readPage(
    parsePage(query, {}, "ten"),
    (request) => deps.directory.page(request),
    (entry) => ({ createdAt: entry.createdAt, id: entry.tenantId }),
  );
  const idsByShard = Map.groupBy(entries.data, (entry) => entry.shard);
  const tenants = await Promise.all(
    [...idsByShard].map(([shard, some]) => deps.tenantStore(shard).findMany(some.map((entry) => entry.tenantId))),
  );
  const byId = new Map(tenants.flat().map((tenant) => [tenant.id, tenant]));
  return {
    data: entries.data.flatMap((entry) => byId.get(entry.tenantId) ?? []),
    nextCursor: entries.nextCursor,
  };
}
