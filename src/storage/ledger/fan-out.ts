import type { FanOutPart } from "../../core/fan-out.ts";
import { insertDeliveries } from "./new-deliveries.ts";

type Row = { tenant_id: string; event_id: string; part: number; deliveries: string };
type TenantPart = FanOutPart & { tenantId: string };

/** Five thousand deliveries, of up to 110 bytes each: a bound parameter may be 2 MB. */
const PARTS_PER_STATEMENT = 5;

const COLUMNS = "tenant_id, event_id, part, deliveries";
const OPEN_PARTS = {
  eventId: "f.event_id",
  endpointId: "j.value ->> 0",
  subscriptionId: "j.value ->> 1",
  schemaVersion: "j.value ->> 2",
  versionFault: "j.value ->> 3",
  filterSteps: "j.value ->> 4",
  filterMs: "j.value ->> 5",
};

/** `?1` is the tenant, `?2` the event, `?3` the part. Primary keys. */
const INSERT_PART = insertDeliveries({
  ...OPEN_PARTS,
  from: `(select event_id, deliveries from fan_out where event_id = ?2 and part = ?3 and tenant_id = ?1) f
    cross join json_each(f.deliveries) j`,
  place: "j.key",
});

/**
 * What an endpoint (`?2`) of tenant `?1` is owed by open parts, which belongs into the batch of every change of what new
 * deliveries take from it, and before the change: so they are as they would have been at the acceptance of their event. The
 * parts stay as they are, since deliveries that are there are not made again. Looks through the tenant's open parts, of which
 * there are none but for the seconds after a large fan-out.
 */
export const OWED_TO_ENDPOINT = insertDeliveries({
  ...OPEN_PARTS,
  from: `(select f.event_id, j.value from fan_out f cross join json_each(f.deliveries) j
      where f.tenant_id = ?1 and j.value ->> 0 = ?2) j`,
  eventId: "j.event_id",
  place: "j.event_id",
});

export function owedToEndpoint(db: D1Database, tenantId: string, endpointId: string): D1PreparedStatement {
  return db.prepare(OWED_TO_ENDPOINT).bind(tenantId, endpointId);
}

export function createFanOutLedger(db: D1Database) {
  const selectFirst = (tenantId: string, eventId: string) =>
    db
      .prepare(`select ${COLUMNS} from fan_out where event_id = ? and tenant_id = ? order by part limit 1`)
      .bind(eventId, tenantId);
  return {
    /** Primary key. */
    async findOpenPart({ tenantId, eventId }: { tenantId: string; eventId: string }): Promise<TenantPart | null> {
      const row = await selectFirst(tenantId, eventId).first<Row>();
      return row && toPart(row);
    },

    /**
     * Makes deliveries of a part that is open, which closes it; its event is dispatched when no other is. Gives back the next.
     * Primary keys.
     */
    async expandPart({ tenantId, eventId, part }: TenantPart, now: number): Promise<TenantPart | null> {
      const results = await db.batch<Row>([
        db.prepare(INSERT_PART).bind(tenantId, eventId, part),
        db
          .prepare("delete from fan_out where event_id = ?2 and part = ?3 and tenant_id = ?1")
          .bind(tenantId, eventId, part),
        db
          .prepare(
            `update event set dispatched_at = ?3 where tenant_id = ?1 and id = ?2 and dispatched_at is null
               and not exists (select 1 from fan_out f where f.event_id = ?2 and f.tenant_id = ?1)`,
          )
          .bind(tenantId, eventId, now),
        selectFirst(tenantId, eventId),
      ]);
      const next = results.at(-1)!.results[0];
      return next ? toPart(next) : null;
    },

    /** Primary key: it begins with the time of acceptance. */
    async listOpenParts(beforeId: string, limit: number): Promise<TenantPart[]> {
      const { results } = await db
        .prepare(`select ${COLUMNS} from fan_out where event_id < ? order by event_id, part limit ?`)
        .bind(beforeId, limit)
        .all<Row>();
      return results.map(toPart);
    },
  };
}

/**
 * Of a publish commit: through the event's row, as its deliveries are. A commit whose answer was lost may be done again when
 * all of it has been expanded, and then opens nothing.
 */
export function insertParts(db: D1Database, tenantId: string, parts: FanOutPart[]): D1PreparedStatement[] {
  const statements: D1PreparedStatement[] = [];
  for (let i = 0; i < parts.length; i += PARTS_PER_STATEMENT) {
    const rows = parts
      .slice(i, i + PARTS_PER_STATEMENT)
      .map(({ eventId, part, deliveries }) => [eventId, part, deliveries]);
    statements.push(
      db
        .prepare(
          `insert into fan_out (${COLUMNS})
           select e.tenant_id, e.id, j.value ->> 1, j.value -> 2
           from json_each(?2) j cross join event e on e.tenant_id = ?1 and e.id = j.value ->> 0
           where e.dispatched_at is null
           on conflict do nothing`,
        )
        .bind(tenantId, JSON.stringify(rows)),
    );
  }
  return statements;
}

function toPart({ tenant_id: tenantId, event_id: eventId, part, deliveries }: Row): TenantPart {
  return { tenantId, eventId, part, deliveries: JSON.parse(deliveries) as FanOutPart["deliveries"] };
}
