import { and, desc, eq, isNull, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import type { PageRequest, Source, SourceKeys, StoredDeliveryKey } from "../../core/model.ts";
import { MAX_SOURCES } from "../../core/quotas.ts";
import { ok, refuse, type Result } from "../../core/result.ts";
import { apiKey, source } from "../schema.ts";
import { afterKey, bumpTenantRevision, hasRoom, isUniqueViolation, orKeep, valuesWhere } from "./statements.ts";

const columns = {
  id: source.id,
  name: source.name,
  allowedEventTypes: source.allowedEventTypes,
  signingKeyVersion: source.signingKeyVersion,
  previousValidUntil: source.previousValidUntil,
  deliveryKeyVersion: source.deliveryKeyVersion,
  deliveryKeyPreviousValidUntil: source.deliveryKeyPreviousValidUntil,
  createdAt: source.createdAt,
};
type SourceRow = { [Column in keyof typeof columns]: (typeof source.$inferSelect)[Column] };

export function createSourceStore(d1: D1Database) {
  const db = drizzle(d1);
  const isAny = (tenantId: string, id: string) => and(eq(source.tenantId, tenantId), eq(source.id, id));
  const isLiving = (tenantId: string, id: string) => and(isAny(tenantId, id), isNull(source.deletedAt));
  return {
    /** Counted by `source_name`. */
    async insert(
      tenantId: string,
      row: Source,
      wrappedKey: Uint8Array,
      { wrappedKey: deliveryKey, publicKey: deliveryPublicKey }: StoredDeliveryKey,
    ): Promise<Result<null, "name_taken" | "quota_exceeded">> {
      const allowedEventTypes = JSON.stringify(row.allowedEventTypes);
      const values = { ...row, tenantId, allowedEventTypes, signingKey: wrappedKey, deliveryKey, deliveryPublicKey };
      const room = hasRoom(source, and(eq(source.tenantId, tenantId), isNull(source.deletedAt)), MAX_SOURCES);
      const isStored = sql`exists (select 1 from ${source} where ${isLiving(tenantId, row.id)})`;
      const inserted = await refuseTakenName(async () => {
        const [rows] = await db.batch([
          db
            .insert(source)
            .select(valuesWhere(source, values, room))
            .returning({ id: source.id }),
          bumpTenantRevision(db, tenantId, isStored),
        ]);
        return rows.length > 0;
      });
      if (!inserted.ok) return inserted;
      return inserted.value ? ok(null) : refuse("quota_exceeded");
    },

    async find(tenantId: string, id: string): Promise<Source | null> {
      const rows = await db.select(columns).from(source).where(isLiving(tenantId, id));
      return rows[0] ? toSource(rows[0]) : null;
    },

    /** Of one that is deleted too. Primary key. */
    async findName(tenantId: string, id: string): Promise<string | null> {
      const rows = await db.select({ name: source.name }).from(source).where(isAny(tenantId, id));
      return rows[0]?.name ?? null;
    },

    async page(tenantId: string, { limit, after }: PageRequest): Promise<Source[]> {
      const rows = await db
        .select(columns)
        .from(source)
        .where(
          and(eq(source.tenantId, tenantId), isNull(source.deletedAt), afterKey(source.createdAt, source.id, after)),
        )
        .orderBy(desc(source.createdAt), desc(source.id))
        .limit(limit);
      return rows.map(toSource);
    },

    /** Null when there is no such source. */
    async update(
      tenantId: string,
      id: string,
      changes: { name?: string; allowedEventTypes?: string[] },
    ): Promise<Result<Source | null, "name_taken">> {
      const allowed = changes.allowedEventTypes && JSON.stringify(changes.allowedEventTypes);
      return refuseTakenName(async () => {
        const [rows] = await db.batch([
          db
            .update(source)
            .set({
              name: orKeep(changes.name, source.name),
              allowedEventTypes: orKeep(allowed, source.allowedEventTypes),
            })
            .where(isLiving(tenantId, id))
            .returning(columns),
          bumpTenantRevision(db, tenantId),
        ]);
        return rows[0] ? toSource(rows[0]) : null;
      });
    },

    async findKeys(tenantId: string, id: string): Promise<SourceKeys | null> {
      const [row] = await db
        .select({
          version: source.signingKeyVersion,
          current: source.signingKey,
          previous: source.signingKeyPrevious,
          previousValidUntil: source.previousValidUntil,
        })
        .from(source)
        .where(isLiving(tenantId, id));
      return row ? toKeys(row) : null;
    },

    /**
     * The present key becomes the previous one, over whatever that was. Null, and nothing changed, when the source has not
     * the version before this one any more, or is gone.
     */
    async rotateKey(
      tenantId: string,
      id: string,
      key: { version: number; wrappedKey: Uint8Array; previousValidUntil: number },
    ): Promise<Source | null> {
      const [rows] = await db.batch([
        db
          .update(source)
          .set({
            signingKeyVersion: key.version,
            signingKey: key.wrappedKey,
            signingKeyPrevious: sql`${source.signingKey}`,
            previousValidUntil: sql`iif(${source.signingKey} is null, null, ${key.previousValidUntil})`,
          })
          .where(and(isLiving(tenantId, id), eq(source.signingKeyVersion, key.version - 1)))
          .returning(columns),
        bumpTenantRevision(db, tenantId),
      ]);
      return rows[0] ? toSource(rows[0]) : null;
    },

    /** Of a deleted one too, as is the relay's own: their deliveries go on, and are signed. */
    async findDeliveryKeys(tenantId: string, id: string): Promise<SourceKeys | null> {
      const [row] = await db
        .select({
          version: source.deliveryKeyVersion,
          current: source.deliveryKey,
          previous: source.deliveryKeyPrevious,
          previousValidUntil: source.deliveryKeyPreviousValidUntil,
        })
        .from(source)
        .where(isAny(tenantId, id));
      return row ? toKeys(row) : null;
    },

    /** As `rotateKey`, and the public halves with it. */
    async rotateDeliveryKey(
      tenantId: string,
      id: string,
      key: StoredDeliveryKey & { previousValidUntil: number },
    ): Promise<Source | null> {
      const [rows] = await db.batch([
        db
          .update(source)
          .set({
            deliveryKeyVersion: key.version,
            deliveryKey: key.wrappedKey,
            deliveryPublicKey: key.publicKey,
            deliveryKeyPrevious: sql`${source.deliveryKey}`,
            deliveryPublicKeyPrevious: sql`${source.deliveryPublicKey}`,
            deliveryKeyPreviousValidUntil: sql`iif(${source.deliveryKey} is null, null, ${key.previousValidUntil})`,
          })
          .where(and(isAny(tenantId, id), eq(source.deliveryKeyVersion, key.version - 1)))
          .returning(columns),
        bumpTenantRevision(db, tenantId),
      ]);
      return rows[0] ? toSource(rows[0]) : null;
    },

    /** Its publish keys go with it. False when there is no such source. */
    async delete(tenantId: string, id: string, now: number): Promise<boolean> {
      const [deleted] = await db.batch([
        db.update(source).set({ deletedAt: now }).where(isLiving(tenantId, id)).returning({ id: source.id }),
        db
          .update(apiKey)
          .set({ revokedAt: now })
          .where(and(eq(apiKey.tenantId, tenantId), eq(apiKey.sourceId, id), isNull(apiKey.revokedAt))),
        bumpTenantRevision(db, tenantId),
      ]);
      return deleted.length > 0;
    },
  };
}

function toKeys<T extends { current: Uint8Array | null; previous: Uint8Array | null }>(row: T): T {
  const { current, previous } = row;
  return { ...row, current: current && new Uint8Array(current), previous: previous && new Uint8Array(previous) };
}

/** Two that take a name at once meet in the index `source_name`, not in a look-up before the write. */
async function refuseTakenName<T>(write: () => Promise<T>): Promise<Result<T, "name_taken">> {
  try {
    return ok(await write());
  } catch (error) {
    if (isUniqueViolation(error, "source.tenant_id, source.name")) return refuse("name_taken");
    throw error;
  }
}

function toSource(row: SourceRow): Source {
  return { ...row, allowedEventTypes: JSON.parse(row.allowedEventTypes) as string[] };
}
