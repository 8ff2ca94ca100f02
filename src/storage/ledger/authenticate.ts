/** Who calls: read for every request, so that nothing remembers a key that was revoked. */
export function createAuthLedger(db: D1Database) {
  return {
    /** api_key_hash, then the tenant's primary key. */
    async findKeyOwner(keyHash: Uint8Array) {
      const row = await db
        .prepare(
          `select k.tenant_id, k.scope, k.source_id from api_key k cross join tenant t on t.id = k.tenant_id
           where k.key_hash = ? and k.revoked_at is null and t.deleted_at is null`,
        )
        .bind(keyHash)
        .first<{ tenant_id: string; scope: "admin" | "read" | "publish"; source_id: string | null }>();
      return row && { tenantId: row.tenant_id, scope: row.scope, sourceId: row.source_id };
    },
  };
}
