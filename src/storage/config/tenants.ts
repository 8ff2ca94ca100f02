import { and, desc, eq, isNull, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import type { PageRequest, Tenant, TenantChanges } from "../../core/model.ts";
import { apiKey, endpoint, eventType, source, subscription, tenant, tenantDirectory } from "../schema.ts";
import { afterKey, orKeep } from "./statements.ts";

const directoryColumns = {
  tenantId: tenantDirectory.tenantId,
  shard: tenantDirectory.shard,
  createdAt: tenantDirectory.createdAt,
};

/** Which shard each tenant lives in; kept in the central database. Rows stay when their tenant is deleted. */
export function createTenantDirectory(central: D1Database) {
  const db = drizzle(central);
  return {
    async add(entry: { tenantId: string; shard: string; createdAt: number }): Promise<void> {
      await db.insert(tenantDirectory).values(entry);
    },

    async find(tenantId: string): Promise<{ shard: string } | null> {
      const rows = await db
        .select(directoryColumns)
        .from(tenantDirectory)
        .where(eq(tenantDirectory.tenantId, tenantId));
      return rows[0] ?? null;
    },

    /** By `tenant_directory_created`. */
    async page({ limit, after }: PageRequest): Promise<{ tenantId: string; shard: string; createdAt: number }[]> {
      return db
        .select(directoryColumns)
        .from(tenantDirectory)
        .where(afterKey(tenantDirectory.createdAt, tenantDirectory.tenantId, after))
        .orderBy(desc(tenantDirectory.createdAt), desc(tenantDirectory.tenantId))
        .limit(limit);
    },
  };
}

const tenantColumns = {
  id: tenant.id,
  name: tenant.name,
  plan: tenant.plan,
  status: tenant.status,
  endpointQuota: tenant.endpointQuota,
  headerPrefix: tenant.headerPrefix,
  requireRegisteredTypes: tenant.requireRegisteredTypes,
  suspendedAt: tenant.suspendedAt,
  shard: tenant.shard,
  createdAt: tenant.createdAt,
};

/** The tenants of one shard. */
export function createTenantStore(shard: D1Database) {
  const db = drizzle(shard);
  const isLiving = (id: string) => and(eq(tenant.id, id), isNull(tenant.deletedAt));
  return {
    async insert(row: Tenant): Promise<void> {
      await db.insert(tenant).values(row);
    },

    async find(id: string): Promise<Tenant | null> {
      const rows = await db.select(tenantColumns).from(tenant).where(isLiving(id));
      return (rows[0] as Tenant | undefined) ?? null;
    },

    /** The living ones among `ids`, in no order. */
    async findMany(ids: string[]): Promise<Tenant[]> {
      const isWanted = sql`${tenant.id} in (select value from json_each(${JSON.stringify(ids)}))`;
      const rows = await db
        .select(tenantColumns)
        .from(tenant)
        .where(and(isWanted, isNull(tenant.deletedAt)));
      return rows as Tenant[];
    },

    /** Null when there is no such tenant. Suspending one that is, or reactivating one that is not, moves no clock. */
    async update(
      id: string,
      { name, plan, status, endpointQuota, headerPrefix, requireRegisteredTypes }: TenantChanges,
      now: number,
    ): Promise<Tenant | null> {
      const rows = await db
        .update(tenant)
        .set({
          name: orKeep(name, tenant.name),
          plan: orKeep(plan, tenant.plan),
          status: orKeep(status, tenant.status),
          endpointQuota: orKeep(endpointQuota, tenant.endpointQuota),
          headerPrefix: orKeep(headerPrefix, tenant.headerPrefix),
          requireRegisteredTypes: orKeep(requireRegisteredTypes, tenant.requireRegisteredTypes),
          ...(status === "suspended" && { suspendedAt: sql`coalesce(${tenant.suspendedAt}, ${now})` }),
          ...(status === "active" && {
            suspendedAt: null,
            resumedAt: sql`iif(${tenant.status} = 'active', ${tenant.resumedAt}, ${now})`,
          }),
          revision: sql`${tenant.revision} + 1`,
        })
        .where(isLiving(id))
        .returning(tenantColumns);
      return (rows[0] as Tenant | undefined) ?? null;
    },

    /** A walk through the tenant's endpoints, by `endpoint_living`: for an operator, and seldom. */
    async findHeaderUnder(id: string, prefix: string): Promise<{ endpointId: string; name: string } | null> {
      const row = await shard
        .prepare(
          `select e.id, h.key as name from endpoint e cross join json_each(e.headers) h
           where e.tenant_id = ?1 and e.deleted_at is null and e.headers <> '{}'
             and substr(replace(lower(h.key), '_', '-'), 1, length(?2)) = lower(?2) limit 1`,
        )
        .bind(id, prefix)
        .first<{ id: string; name: string }>();
      return row && { endpointId: row.id, name: row.name };
    },

    /** Ends the tenant and all of its configuration at once; events and deliveries stay. False when there is none. */
    async delete(id: string, now: number): Promise<boolean> {
      const [deleted] = await db.batch([
        db
          .update(tenant)
          .set({ deletedAt: now, revision: sql`${tenant.revision} + 1` })
          .where(isLiving(id))
          .returning({ id: tenant.id }),
        db
          .update(source)
          .set({ deletedAt: now })
          .where(and(eq(source.tenantId, id), isNull(source.deletedAt))),
        db
          .update(endpoint)
          .set({ deletedAt: now, revision: sql`${endpoint.revision} + 1` })
          .where(and(eq(endpoint.tenantId, id), isNull(endpoint.deletedAt))),
        db
          .update(subscription)
          .set({ deletedAt: now })
          .where(and(eq(subscription.tenantId, id), isNull(subscription.deletedAt))),
        db
          .update(apiKey)
          .set({ revokedAt: now })
          .where(and(eq(apiKey.tenantId, id), isNull(apiKey.revokedAt))),
        db.delete(eventType).where(eq(eventType.tenantId, id)),
      ]);
      return deleted.length > 0;
    },
  };
}
