import { and, desc, eq, isNull, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import type { ApiKey, PageRequest } from "../../core/model.ts";
import { MAX_API_KEYS } from "../../core/quotas.ts";
import { apiKey, source, tenant } from "../schema.ts";
import { afterKey, bumpTenantRevision, hasRoom, orKeep, valuesWhere } from "./statements.ts";

const columns = {
  id: apiKey.id,
  prefix: apiKey.prefix,
  scope: apiKey.scope,
  sourceId: apiKey.sourceId,
  name: apiKey.name,
  createdAt: apiKey.createdAt,
};

export function createApiKeyStore(d1: D1Database) {
  const db = drizzle(d1);
  const isLiving = (tenantId: string, id: string) =>
    and(eq(apiKey.tenantId, tenantId), eq(apiKey.id, id), isNull(apiKey.revokedAt));
  return {
    /** `no_source` when the key's source does not exist (any more), `full` at the limit; then nothing is stored. */
    async insert(tenantId: string, key: ApiKey, keyHash: Uint8Array): Promise<"stored" | "no_source" | "full"> {
      const hasItsSource =
        key.sourceId === null
          ? sql`true`
          : sql`exists (select 1 from ${source} where ${source.tenantId} = ${tenantId} and ${source.id} = ${key.sourceId}
              and ${source.deletedAt} is null)`;
      const row = { ...key, tenantId, keyHash: keyHash };
      const room = hasRoom(apiKey, and(eq(apiKey.tenantId, tenantId), isNull(apiKey.revokedAt)), MAX_API_KEYS);
      const isStored = sql`exists (select 1 from ${apiKey} where ${isLiving(tenantId, key.id)})`;
      const [inserted, [rooms]] = await db.batch([
        db
          .insert(apiKey)
          .select(valuesWhere(apiKey, row, sql`${hasItsSource} and ${room}`))
          .returning({ id: apiKey.id }),
        db
          .select({ hasRoom: sql<number>`${room}` })
          .from(tenant)
          .where(eq(tenant.id, tenantId)),
        bumpTenantRevision(db, tenantId, isStored),
      ]);
      if (inserted.length > 0) return "stored";
      return rooms?.hasRoom === 0 ? "full" : "no_source";
    },

    async find(tenantId: string, id: string): Promise<ApiKey | null> {
      const rows = await db.select(columns).from(apiKey).where(isLiving(tenantId, id));
      return (rows[0] as ApiKey | undefined) ?? null;
    },

    async page(tenantId: string, { limit, after }: PageRequest): Promise<ApiKey[]> {
      const rows = await db
        .select(columns)
        .from(apiKey)
        .where(
          and(eq(apiKey.tenantId, tenantId), isNull(apiKey.revokedAt), afterKey(apiKey.createdAt, apiKey.id, after)),
        )
        .orderBy(desc(apiKey.createdAt), desc(apiKey.id))
        .limit(limit);
      return rows as ApiKey[];
    },

    /** Null when there is no such key. */
    async update(tenantId: string, id: string, changes: { name?: string | null }): Promise<ApiKey | null> {
      const [rows] = await db.batch([
        db
          .update(apiKey)
          .set({ name: orKeep(changes.name, apiKey.name) })
          .where(isLiving(tenantId, id))
          .returning(columns),
        bumpTenantRevision(db, tenantId),
      ]);
      return (rows[0] as ApiKey | undefined) ?? null;
    },

    /** False when there is no such key. */
    async revoke(tenantId: string, id: string, now: number): Promise<boolean> {
      const [revoked] = await db.batch([
        db.update(apiKey).set({ revokedAt: now }).where(isLiving(tenantId, id)).returning({ id: apiKey.id }),
        bumpTenantRevision(db, tenantId),
      ]);
      return revoked.length > 0;
    },
  };
}
