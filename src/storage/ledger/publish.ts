import type { VersionFault } from "../../core/choose-version.ts";
import { encodeVariants } from "../../core/event-variants.ts";
import type { FanOutPart } from "../../core/fan-out.ts";
import type { FilterCost, SkippedSubscription } from "../../core/match.ts";
import type { Event } from "../../core/model.ts";
import { insertParts } from "./fan-out.ts";
import { noteFilterFailures, type FailedFilter } from "./filter-failures.ts";
import { insertDeliveries } from "./new-deliveries.ts";
import { createPublishConfigLedger } from "./publish-config.ts";
import { toSkipped } from "./read-rows.ts";

/** One delivery an event owes: the event and endpoint are its identity. */
export interface NewDelivery {
  eventId: string;
  endpointId: string;
  subscriptionId: string;
  schemaVersion: number;
  versionFault: VersionFault | null;
  filterMatch?: FilterCost;
}

/** The event that holds an idempotency key after a commit. */
export interface KeyHolder {
  /** Index into the committed events. */
  index: number;
  id: string;
  type: string;
  schemaVersion: number;
  orderingKey: string | null;
  payloadSha256: string;
  /** As `encodeVariants` has them. */
  variants: string | null;
  relayedAt: number;
  deliveryCount: number;
  skippedCount: number;
  skipped: SkippedSubscription[];
}

/** `stale`: the configuration has changed since `revision`, nothing was written. */
export type CommitResult = { stale: true } | { stale: false; holders: KeyHolder[] };

/** Deliveries per statement: a bound parameter may be 2 MB, and one of them takes about 90 bytes, up to 140 with all it may say. */
const DELIVERIES_PER_STATEMENT = 5_000;
const SKIPPED_PER_STATEMENT = 5_000;

export function createPublishLedger(db: D1Database) {
  return {
    ...createPublishConfigLedger(db),

    /**
     * The publish commit: events, their deliveries and parts of what else they owe, atomic, and idempotent because ids are
     * chosen by the caller. Deliveries and parts are selected through the event row, so an event whose key was taken brings
     * none and sinks nobody else. Whether an endpoint is disabled, and its policy, is read from its row here and not from
     * what was matched.
     */
    async commitPublish(
      tenantId: string,
      revision: number,
      events: Event[],
      deliveries: NewDelivery[],
      now: number,
      parts: FanOutPart[],
      failedFilters: FailedFilter[],
    ): Promise<CommitResult> {
      const keyed = events.flatMap(({ sourceId, idempotencyKey }, index) =>
        idempotencyKey === null ? [] : [[sourceId, idempotencyKey, index]],
      );
      const results = await db.batch<Record<string, unknown>>([
        db.prepare("select revision from tenant where id = ?").bind(tenantId),
        ...(keyed.length > 0 ? [freeExpiredKeys(db, keyed, now)] : []),
        ...splitBySkipped(events).map((some) => insertEvents(db, tenantId, revision, some)),
        ...chunk(deliveries, DELIVERIES_PER_STATEMENT).map((some) => insertGiven(db, tenantId, some)),
        ...insertParts(db, tenantId, parts),
        ...noteFilterFailures(db, tenantId, revision, failedFilters, now),
        countCommitted(db, tenantId, revision, events),
        ...(keyed.length > 0 ? [selectKeyHolders(db, keyed)] : []),
      ]);
      // Done again after its answer was lost, a commit may find a later revision and its own events under it.
      const committed = results.at(keyed.length > 0 ? -2 : -1)!.results[0]!["n"] as number;
      if (results[0]!.results[0]?.["revision"] !== revision && committed === 0) return { stale: true };
      return { stale: false, holders: keyed.length > 0 ? results.at(-1)!.results.map(toKeyHolder) : [] };
    },

    /** Who holds these keys, each a source and its key; `index` into them. event_idempotency. */
    async findKeyHolders(keys: [sourceId: string, key: string][], now: number): Promise<KeyHolder[]> {
      const { results } = await selectKeyHolders(
        db,
        keys.map(([sourceId, key], index) => [sourceId, key, index]),
        now,
      ).all();
      return results.map(toKeyHolder);
    },

    /** The first deliveries of events as they were when they were accepted, in order of endpoint id. Primary key. */
    async listFirstDeliveries(tenantId: string, eventIds: string[], limit: number) {
      const results = await db.batch<{ endpoint_id: string; subscription_id: string; status: "pending" | "failed" }>(
        eventIds.map((eventId) =>
          db
            .prepare(
              `select endpoint_id, subscription_id,
                 iif(final_outcome in ('endpoint_disabled', 'version_not_published', 'version_retired')
                   and terminal_at = created_at, 'failed', 'pending') as status
               from delivery where tenant_id = ? and event_id = ? and replay_no = 0 order by endpoint_id limit ?`,
            )
            .bind(tenantId, eventId, limit),
        ),
      );
      return results.map(({ results: rows }) =>
        rows.map((row) => ({ endpointId: row.endpoint_id, subscriptionId: row.subscription_id, status: row.status })),
      );
    },
  };
}

/** Nearly always one part: a bound parameter may be 2 MB, and who was skipped may take 5 kB of an event. */
function splitBySkipped(events: Event[]): Event[][] {
  const parts: Event[][] = [[]];
  let skipped = 0;
  for (const event of events) {
    skipped += event.skipped.length;
    if (skipped > SKIPPED_PER_STATEMENT) {
      parts.push([]);
      skipped = event.skipped.length;
    }
    parts.at(-1)!.push(event);
  }
  return parts;
}

/** A key is free again once its event has expired, whether or not that row has been deleted. event_idempotency. */
function freeExpiredKeys(db: D1Database, keyed: unknown[], now: number): D1PreparedStatement {
  return db
    .prepare(
      `update event set idempotency_key = null where (tenant_id, id) in (
         select e.tenant_id, e.id from json_each(?1) k
         cross join event e on e.source_id = k.value ->> 0 and e.idempotency_key = k.value ->> 1
         where e.expires_at <= ?2)`,
    )
    .bind(JSON.stringify(keyed), now);
}

function insertEvents(db: D1Database, tenantId: string, revision: number, events: Event[]): D1PreparedStatement {
  const rows = events.map((event) => [
    event.id,
    event.sourceId,
    event.type,
    event.schemaVersion,
    event.orderingKey,
    event.idempotencyKey,
    event.payloadRef,
    event.payloadSha256,
    event.payloadSize,
    event.payloadIsJson ? 1 : 0,
    event.contentType,
    event.contentEncoding,
    event.occurredAt,
    event.relayedAt,
    event.causeEventId,
    event.relayRegion,
    event.expiresAt,
    event.dispatchedAt,
    event.deliveryCount,
    event.hopCount,
    event.skippedCount,
    event.skippedCount === 0 ? null : JSON.stringify(event.skipped.map((one) => [one.subscriptionId, one.reason])),
    encodeVariants(event.variants),
  ]);
  const columns = rows[0]!.map((_, i) => (i === 7 ? `unhex(j.value ->> ${i})` : `j.value ->> ${i}`));
  return db
    .prepare(
      `insert into event (tenant_id, id, source_id, type, schema_version, ordering_key, idempotency_key, payload_ref,
         payload_sha256, payload_size, payload_is_json, content_type, content_encoding, occurred_at, relayed_at,
         cause_event_id, relay_region, expires_at, dispatched_at, delivery_count, hop_count, skipped_count, skipped,
         variants)
       select t.id, ${columns.join(", ")}
       from tenant t cross join json_each(?2) j
       where t.id = ?1 and t.revision = ?3
       on conflict do nothing`,
    )
    .bind(tenantId, JSON.stringify(rows), revision);
}

const INSERT_GIVEN = insertDeliveries({
  from: "json_each(?2) j",
  eventId: "j.value ->> 0",
  endpointId: "j.value ->> 1",
  subscriptionId: "j.value ->> 2",
  schemaVersion: "j.value ->> 3",
  versionFault: "j.value ->> 4",
  filterSteps: "j.value ->> 5",
  filterMs: "j.value ->> 6",
  place: "j.key",
});

/** Those of one lane in the order of `deliveries`. */
function insertGiven(db: D1Database, tenantId: string, deliveries: NewDelivery[]): D1PreparedStatement {
  const rows = deliveries.map(({ eventId, endpointId, subscriptionId, schemaVersion, versionFault, filterMatch }) => [
    eventId,
    endpointId,
    subscriptionId,
    schemaVersion,
    ...(filterMatch ? [versionFault, filterMatch.steps, filterMatch.ms] : versionFault === null ? [] : [versionFault]),
  ]);
  return db.prepare(INSERT_GIVEN).bind(tenantId, JSON.stringify(rows));
}

/** How many of these events are there, asked only when the configuration is not that of `revision`. */
function countCommitted(db: D1Database, tenantId: string, revision: number, events: Event[]): D1PreparedStatement {
  return db
    .prepare(
      `select count(*) as n from tenant t cross join json_each(?2) j
       cross join event e on e.tenant_id = ?1 and e.id = j.value
       where t.id = ?1 and t.revision <> ?3`,
    )
    .bind(tenantId, JSON.stringify(events.map(({ id }) => id)), revision);
}

function toKeyHolder(row: Record<string, unknown>): KeyHolder {
  return {
    index: row["position"] as number,
    id: row["id"] as string,
    type: row["type"] as string,
    schemaVersion: row["schema_version"] as number,
    orderingKey: row["ordering_key"] as string | null,
    payloadSha256: (row["payload_sha256"] as string).toLowerCase(),
    variants: row["variants"] as string | null,
    relayedAt: row["relayed_at"] as number,
    deliveryCount: row["delivery_count"] as number,
    skippedCount: row["skipped_count"] as number,
    skipped: toSkipped(row["skipped"] as string | null),
  };
}

function selectKeyHolders(db: D1Database, keyed: unknown[], now = 0): D1PreparedStatement {
  return db
    .prepare(
      `select k.value ->> 2 as position, e.id, e.type, e.schema_version, e.ordering_key,
              hex(e.payload_sha256) as payload_sha256, e.relayed_at, e.delivery_count, e.skipped_count, e.skipped,
              e.variants
       from json_each(?1) k cross join event e on e.source_id = k.value ->> 0 and e.idempotency_key = k.value ->> 1
       where e.expires_at > ?2`,
    )
    .bind(JSON.stringify(keyed), now);
}

function chunk<T>(items: T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, i) => items.slice(i * size, (i + 1) * size));
}
