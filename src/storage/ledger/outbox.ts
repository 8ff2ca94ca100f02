import type { OperationalEventType } from "../../core/event-type.ts";
import type { RaisedEvent } from "../../core/operational-event.ts";
import { RELAY_SOURCE_NAME, relaySourceId } from "../../core/relay-source.ts";

interface Row {
  raised_at: number;
  id: string;
  type: string;
  facts: string;
}

/** The notes of transitions (`raise.ts`) on their way to being events. */
export function createOutboxLedger(db: D1Database) {
  return {
    /**
     * A tenant's notes in the order of their transitions, and the source that their events need. Notes from before `keptFrom`
     * are gone: what they tell of is past its retention too. Primary keys.
     */
    async listRaised(tenantId: string, keptFrom: number, limit: number, now: number): Promise<RaisedEvent[]> {
      const [, , rows] = await db.batch<Row>([
        db.prepare("delete from operational_event where tenant_id = ? and raised_at < ?").bind(tenantId, keptFrom),
        db
          .prepare(
            `insert into source (tenant_id, id, name, allowed_event_types, created_at, deleted_at)
             select ?1, ?2, ?3, '[]', ?4, ?4 where exists (select 1 from operational_event where tenant_id = ?1)
             on conflict do nothing`,
          )
          .bind(tenantId, relaySourceId(tenantId), RELAY_SOURCE_NAME, now),
        db
          .prepare(
            `select raised_at, id, type, facts from operational_event where tenant_id = ? order by raised_at, id limit ?`,
          )
          .bind(tenantId, limit),
      ]);
      return rows!.results.map((row) => ({
        id: row.id,
        type: row.type as OperationalEventType,
        raisedAt: row.raised_at,
        facts: JSON.parse(row.facts),
      }));
    },

    /** Done again it changes nothing. Primary key. */
    async deleteRaised(tenantId: string, raised: Pick<RaisedEvent, "raisedAt" | "id">[]): Promise<void> {
      await db
        .prepare(
          `delete from operational_event where (tenant_id, raised_at, id) in (
             select ?1, j.value ->> 0, j.value ->> 1 from json_each(?2) j)`,
        )
        .bind(tenantId, JSON.stringify(raised.map(({ raisedAt, id }) => [raisedAt, id])))
        .run();
    },

    /** The next `limit` tenants behind `after` that have notes: a loose scan reads one row a tenant. Primary key. */
    async listRaisedTenants(after: string, limit: number): Promise<string[]> {
      const { results } = await db
        .prepare(
          `with recursive outbox (tenant_id, n) as (
             select (select min(tenant_id) from operational_event where tenant_id > ?1), 1
             union all
             select (select min(tenant_id) from operational_event where tenant_id > outbox.tenant_id), n + 1
             from outbox where outbox.tenant_id is not null and n < ?2)
           select tenant_id from outbox where tenant_id is not null`,
        )
        .bind(after, limit)
        .all<{ tenant_id: string }>();
      return results.map(({ tenant_id: tenantId }) => tenantId);
    },
  };
}
