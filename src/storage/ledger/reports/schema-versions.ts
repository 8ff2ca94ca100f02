import { toWords } from "../../../core/grammar.ts";
import { eventIdTimeMs, firstEventIdAt } from "../../../core/ids.ts";
import type { AskingSubscription, KnownVersion, RecentEvents } from "../../../core/version-rows.ts";
import { completeFromOf, EVENTS_WALKED, seenSince } from "./walk.ts";

type Row = Record<string, any>;

/** Events that one call looks at. */
export const MAX_RECENT_EVENTS = 50_000;
/** Deliveries that one call looks at, over all subscriptions that it asks for; of one no more and no fewer than these. */
const MAX_RECEIVED = 20_000;
const MAX_RECEIVED_EACH = 1_000;
const MIN_RECEIVED_EACH = 10;

/** What a subscription received of one version of one type. */
export interface ReceivedVersion {
  type: string;
  schemaVersion: number;
  deliveries: number;
  lastAt: number;
}

export interface Received {
  versions: ReceivedVersion[];
  /** Whether all its deliveries of the window were looked at. */
  isComplete: boolean;
}

export function createSchemaVersionsReport(
  db: D1Database,
  limits = { events: MAX_RECENT_EVENTS, received: MAX_RECEIVED },
) {
  return {
    /**
     * What says which versions there are and who asks for them, as of one moment: the tenant's registered versions (primary key),
     * its living and enabled subscriptions (subscription_living), and its newest events (primary key), all of which are bounded.
     */
    async readVersions(tenantId: string, eventType: string | null, from: number, now: number) {
      const [registered, subscriptions, recent] = await db.batch<Row>([
        db
          .prepare("select name, required_scope, schema_version, retired_at from event_type where tenant_id = ?")
          .bind(tenantId),
        db
          .prepare(
            `select s.id, s.endpoint_id, s.event_type_pattern, s.filter is not null as is_filtered, s.entitlement_scope,
               s.schema_version, e.disabled_at
             from subscription s cross join endpoint e on e.tenant_id = s.tenant_id and e.id = s.endpoint_id
             where s.tenant_id = ? and s.deleted_at is null and s.disabled_at is null and e.deleted_at is null
             order by s.created_at, s.id`,
          )
          .bind(tenantId),
        db
          .prepare(
            `with ${EVENTS_WALKED}, ${seenSince(["events_walked", "id"])},
             recent as (
               select type, count(*) as n, max(id) as last_id,
                 schema_version || coalesce((select ',' || group_concat(v.value ->> 0) from json_each(variants) v), '') as versions
               from cut cross join events_walked
               where id >= since and expires_at > ?3 and type <> 'hooklane.test' and (?5 is null or type = ?5)
               group by type, versions)
             select cut.since, recent.* from cut left join recent`,
          )
          .bind(tenantId, firstEventIdAt(from), now, limits.events, eventType),
      ]);
      return {
        completeFrom: completeFromOf(recent!.results[0]!["since"], from),
        registered: registered!.results
          .map(toKnownVersion)
          .filter(({ name }) => eventType === null || name === eventType),
        subscriptions: subscriptions!.results.map(toAskingSubscription),
        recent: recent!.results.filter((row) => row["type"] !== null).map(toRecentEvents),
      };
    },

    /**
     * What each of these subscriptions received in the window, replays too: its newest deliveries (delivery_subscription), and of
     * each its event (primary key). A join would not stop at a limit for each of them.
     */
    async readReceived(
      tenantId: string,
      subscriptionIds: string[],
      from: number,
      now: number,
    ): Promise<Map<string, Received>> {
      const share = Math.floor(limits.received / Math.max(1, subscriptionIds.length));
      const each = Math.min(MAX_RECEIVED_EACH, Math.max(MIN_RECEIVED_EACH, share));
      const { results } = await db
        .prepare(
          `with walked as materialized (
             select s.value as subscription_id, j.value ->> 0 as event_id, j.value ->> 1 as schema_version, j.value ->> 2 as at
             from json_each(?4) s cross join json_each((
               select json_group_array(json_array(event_id, schema_version, at)) from (
                 select d.event_id, d.schema_version,
                   iif(d.status = 'succeeded' and d.expires_at > ?3, d.terminal_at, null) as at
                 from delivery d
                 where d.subscription_id = s.value and d.created_at >= ?2 and +d.tenant_id = ?1
                 order by d.created_at desc limit ?5))) j),
           received as (
             select w.subscription_id, e.type, coalesce(w.schema_version, e.schema_version) as schema_version, w.at
             from walked w cross join event e on e.tenant_id = ?1 and e.id = w.event_id where w.at is not null)
           select subscription_id, type, schema_version, count(*) as n, max(at) as last_at, null as is_complete
           from received group by subscription_id, type, schema_version
           union all
           select subscription_id, null, null, null, null, count(*) < ?5 from walked group by subscription_id`,
        )
        .bind(tenantId, from, now, JSON.stringify(subscriptionIds), each)
        .all<Row>();
      const received = new Map<string, Received>(subscriptionIds.map((id) => [id, { versions: [], isComplete: true }]));
      for (const row of results) {
        const of = received.get(row["subscription_id"])!;
        if (row["type"] === null) of.isComplete = row["is_complete"] === 1;
        else {
          of.versions.push({
            type: row["type"],
            schemaVersion: row["schema_version"],
            deliveries: row["n"],
            lastAt: row["last_at"],
          });
        }
      }
      return received;
    },
  };
}

function toKnownVersion(row: Row): KnownVersion {
  return {
    name: row["name"],
    requiredScope: row["required_scope"],
    schemaVersion: row["schema_version"],
    retiredAt: row["retired_at"],
  };
}

function toAskingSubscription(row: Row): AskingSubscription {
  return {
    id: row["id"],
    endpointId: row["endpoint_id"],
    endpointDisabledAt: row["disabled_at"],
    eventTypePattern: row["event_type_pattern"],
    isFiltered: row["is_filtered"] === 1,
    entitlementScope: toWords(row["entitlement_scope"]),
    schemaVersion: row["schema_version"],
  };
}

function toRecentEvents(row: Row): RecentEvents {
  const versions = (row["versions"] as string).split(",").map(Number);
  return {
    type: row["type"],
    versions,
    count: row["n"],
    lastId: row["last_id"],
    lastAt: eventIdTimeMs(row["last_id"]),
  };
}
