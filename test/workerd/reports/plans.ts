/** A plan that walks a table which grows with events, or all that a tenant has in it. */
export const WALKS =
  /SCAN (delivery|attempt|event|a|d|ev)\b|SEARCH (delivery|attempt|event|a|d|ev) USING .*\(tenant_id=\?\)$/;

/** Values make no difference to a plan, but D1 wants one for each parameter. */
export async function planOf(db: D1Database, sql: string): Promise<string[]> {
  const values = [...new Set(sql.match(/\?\d+/g))].map(() => 0);
  const { results } = await db
    .prepare(`explain query plan ${sql}`)
    .bind(...values)
    .all<{ detail: string }>();
  return results.map(({ detail }) => detail);
}
