import { eventIdTimeMs, firstEventIdAt } from "../../core/ids.ts";
import { splitPayloadRef } from "../../core/payload-ref.ts";

type Row = Record<string, any>;

const TENANTS_PER_WALK = 50;
const WALKED_TENANTS = `select id from tenant where id >= ?1 order by id limit ${TENANTS_PER_WALK}`;

/** Of event `j.value`: what it owes is not all on record yet, and the watchdog is at it. */
const HAS_OPEN_PART = `exists (
  select 1 from fan_out f where f.event_id = j.value ->> 1 and f.tenant_id = j.value ->> 0)`;

/** An event whose time may be up. */
interface OldEvent {
  tenantId: string;
  id: string;
  payloadRef: string;
  expiresAt: number;
}

/** How what has expired leaves the ledger, whatever the backlog: a bounded number of rows at a time. */
export function createRetentionLedger(db: D1Database) {
  return {
    /**
     * Up to `limit` events with ids before `beforeId`, of the next TENANTS_PER_WALK tenants behind `after`, and where to go on;
     * null at the end. Reads old events only, however many young ones there are. Primary keys.
     */
    async walkOldEvents(after: [tenantId: string, eventId: string], beforeId: string, limit: number) {
      const [events, last] = await db.batch<Row>([
        db
          .prepare(
            `select e.tenant_id, e.id, e.payload_ref, e.expires_at from tenant t
             cross join event e on e.tenant_id = t.id and e.id > iif(t.id = ?1, ?2, '') and e.id < ?3
             where t.id between ?1 and (select max(id) from (${WALKED_TENANTS}))
             order by t.id, e.id limit ?4`,
          )
          .bind(...after, beforeId, limit),
        db.prepare(`select max(id) as id, count(*) as n from (${WALKED_TENANTS})`).bind(after[0]),
      ]);
      const rows = events!.results.map((row) => ({
        tenantId: row["tenant_id"] as string,
        id: row["id"] as string,
        payloadRef: row["payload_ref"] as string,
        expiresAt: row["expires_at"] as number,
      }));
      const end = rows.at(-1);
      const window = last!.results[0]!;
      if (rows.length === limit) return { events: rows, next: [end!.tenantId, end!.id] as [string, string] };
      // Behind every event of the last tenant that was looked at.
      if (window["n"] === TENANTS_PER_WALK) return { events: rows, next: [window["id"], "~"] as [string, string] };
      return { events: rows, next: null };
    },

    /**
     * Deletes events with their blocks, attempts and deliveries, but for those with a delivery that is still open or not made
     * yet. At most `maxRows` attempts and as many deliveries go at once, since an event may have thousands: `hasMore` says that
     * some are left. `freedObjects` are those of the events' payload objects that no event refers to any more. Primary keys.
     */
    async deleteEvents(events: OldEvent[], maxRows: number): Promise<{ freedObjects: string[]; hasMore: boolean }> {
      const keys = JSON.stringify(events.map(({ tenantId, id }) => [tenantId, id]));
      const closed = `json_each(?1) j where not exists (
        select 1 from delivery o where o.tenant_id = j.value ->> 0 and o.event_id = j.value ->> 1
          and o.terminal_at is null) and not ${HAS_OPEN_PART}`;
      const delivery = "tenant_id, event_id, endpoint_id, replay_no";
      const [, attempts, deliveries, , freed] = await db.batch<Row>([
        // A block that nobody lifted ends with its dead head.
        db
          .prepare(
            `delete from lane_block where (tenant_id, event_id) in (select j.value ->> 0, j.value ->> 1 from ${closed})`,
          )
          .bind(keys),
        db
          .prepare(
            `delete from attempt where (${delivery}, attempt_number) in (
               select ${columns("a", `${delivery}, attempt_number`)} from (select j.value from ${closed}) j
               cross join attempt a on a.tenant_id = j.value ->> 0 and a.event_id = j.value ->> 1 limit ?2)`,
          )
          .bind(keys, maxRows),
        db
          .prepare(
            `delete from delivery where (${delivery}) in (
               select ${columns("d", delivery)} from (select j.value from ${closed}) j
               cross join delivery d on d.tenant_id = j.value ->> 0 and d.event_id = j.value ->> 1
               where not exists (
                 select 1 from attempt a where a.tenant_id = d.tenant_id and a.event_id = d.event_id
                   and a.endpoint_id = d.endpoint_id and a.replay_no = d.replay_no)
               limit ?2)`,
          )
          .bind(keys, maxRows),
        db
          .prepare(
            `delete from event where (tenant_id, id) in (
               select j.value ->> 0, j.value ->> 1 from json_each(?1) j where not exists (
                 select 1 from delivery d where d.tenant_id = j.value ->> 0 and d.event_id = j.value ->> 1)
                 and not ${HAS_OPEN_PART})`,
          )
          .bind(keys),
        selectFreedObjects(db, events),
      ]);
      return {
        freedObjects: freed!.results.map((row) => row["object_key"] as string),
        hasMore: attempts!.meta.changes === maxRows || deliveries!.meta.changes === maxRows,
      };
    },
  };
}

/** The events of one object were accepted in one millisecond, which their ids begin with: those alone are looked through. */
function selectFreedObjects(db: D1Database, events: OldEvent[]): D1PreparedStatement {
  const objects = new Map<string, [tenantId: string, objectKey: string, from: string, before: string]>();
  for (const { tenantId, id, payloadRef } of events) {
    const [objectKey] = splitPayloadRef(payloadRef);
    const acceptedAt = eventIdTimeMs(id);
    objects.set(objectKey, [tenantId, objectKey, firstEventIdAt(acceptedAt), firstEventIdAt(acceptedAt + 1)]);
  }
  return db
    .prepare(
      `select j.value ->> 1 as object_key from json_each(?1) j where not exists (
         select 1 from event e where e.tenant_id = j.value ->> 0 and e.id >= j.value ->> 2 and e.id < j.value ->> 3
           and substr(e.payload_ref, 1, length(j.value ->> 1) + 1) = (j.value ->> 1) || '#')`,
    )
    .bind(JSON.stringify([...objects.values()]));
}

function columns(table: string, names: string): string {
  return names
    .split(", ")
    .map((name) => `${table}.${name}`)
    .join(", ");
}
