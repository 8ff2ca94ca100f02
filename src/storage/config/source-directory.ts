/** Which tenant each source belongs to, and so its shard; kept in the central database. A row never changes. */
export function createSourceDirectory(central: D1Database) {
  return {
    async add({ sourceId, tenantId }: { sourceId: string; tenantId: string }): Promise<void> {
      await central
        .prepare("insert into source_directory (source_id, tenant_id) values (?, ?) on conflict do nothing")
        .bind(sourceId, tenantId)
        .run();
    },

    /** Both tables by their primary keys. */
    async find(sourceId: string): Promise<{ tenantId: string; shard: string } | null> {
      const row = await central
        .prepare(
          `select t.tenant_id, t.shard from source_directory s cross join tenant_directory t on t.tenant_id = s.tenant_id
           where s.source_id = ?`,
        )
        .bind(sourceId)
        .first<{ tenant_id: string; shard: string }>();
      return row && { tenantId: row.tenant_id, shard: row.shard };
    },
  };
}
