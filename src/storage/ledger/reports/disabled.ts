type Row = Record<string, any>;

const MAX_DISABLED = 1_000;

/** subscription_disabled and endpoint_disabled, each from its end. */
const LIST_DISABLED = `
  select * from (
    select endpoint_id, id as subscription_id, last_disabled_at, disabled_at, null as disabled_reason from subscription
    where tenant_id = ?1 and last_disabled_at >= ?2 and last_disabled_at is not null and deleted_at is null
    order by last_disabled_at desc limit ?3)
  union all
  select * from (
    select id, null, last_disabled_at, disabled_at, disabled_reason from endpoint
    where tenant_id = ?1 and last_disabled_at >= ?2 and last_disabled_at is not null and deleted_at is null
    order by last_disabled_at desc limit ?3)
  order by last_disabled_at desc, endpoint_id, subscription_id limit ?3`;

export function createDisabledReport(db: D1Database, maxDisabled = MAX_DISABLED) {
  return {
    async listDisabled(tenantId: string, from: number) {
      const { results } = await db
        .prepare(LIST_DISABLED)
        .bind(tenantId, from, maxDisabled + 1)
        .all<Row>();
      const omitted = results[maxDisabled];
      return {
        completeFrom: omitted ? (omitted["last_disabled_at"] as number) + 1 : from,
        data: results.slice(0, maxDisabled).map((row) => ({
          endpointId: row["endpoint_id"],
          subscriptionId: row["subscription_id"],
          lastDisabledAt: row["last_disabled_at"],
          disabledAt: row["disabled_at"],
          disabledReason: row["disabled_reason"],
        })),
      };
    },
  };
}
