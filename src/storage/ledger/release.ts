/** What reactivating a tenant asks of the ledger. */
export function createReleaseLedger(db: D1Database) {
  return {
    /** Up to `limit` endpoints for which something is held or stands in a lane. Primary key, then delivery_lane. */
    async listWaitingEndpoints(tenantId: string, limit: number) {
      const { results } = await db
        .prepare(
          `select id, route, lane_generation from endpoint ep
           where tenant_id = ?1 and deleted_at is null and exists (
             select 1 from delivery d where d.endpoint_id = ep.id and d.terminal_at is null and d.lane_key is not null)
           limit ?2`,
        )
        .bind(tenantId, limit)
        .all<{ id: string; route: "queue" | "lane"; lane_generation: number }>();
      return results.map(({ id, route, lane_generation: generation }) => ({
        endpointId: id,
        lane: route === "lane" ? { generation } : null,
      }));
    },
  };
}
