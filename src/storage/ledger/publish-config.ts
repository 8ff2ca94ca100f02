import { toWords } from "../../core/grammar.ts";
import type { MatchableSubscription } from "../../core/match.ts";
import type { SourceKeys } from "../../core/model.ts";
import type { RegisteredVersion } from "../../core/registered-types.ts";
import type { Plan } from "../../core/publish-limits.ts";

/** How a publisher is known: by its key, or by the tenant an operator acts for. */
export type PublisherRef = { keyHash: Uint8Array } | { tenantId: string };

export interface PublishConfigRows {
  tenantId: string;
  plan: Plan;
  revision: number;
  isSuspended: boolean;
  /** Null when the operator acts for the tenant. */
  key: { scope: "admin" | "read" | "publish"; sourceId: string | null } | null;
  sources: { id: string; name: string; allowedEventTypes: string[]; keys: SourceKeys }[];
  /** Oldest first. */
  subscriptions: MatchableSubscription[];
  eventTypes: RegisteredVersion[];
  requiresRegistration: boolean;
}

/** What a publish asks before it commits. */
export function createPublishConfigLedger(db: D1Database) {
  return {
    /** All that a publish is matched against, as of one revision, in one trip. Null when the key or tenant is nobody's. */
    async loadPublishConfig(publisher: PublisherRef): Promise<PublishConfigRows | null> {
      const byKey = "keyHash" in publisher;
      const bound = byKey ? publisher.keyHash : publisher.tenantId;
      // api_key_hash, or the tenant's primary key.
      const tenant = byKey ? "(select tenant_id from api_key where key_hash = ?1 and revoked_at is null)" : "?1";
      const [tenants, keys, sources, subscriptions, eventTypes] = await db.batch<Record<string, unknown>>([
        db
          .prepare(
            `select id, plan, revision, status, require_registered_types from tenant where id = ${tenant} and deleted_at is null`,
          )
          .bind(bound),
        byKey
          ? db.prepare("select scope, source_id from api_key where key_hash = ?1 and revoked_at is null").bind(bound)
          : db.prepare("select 1 where 0 and ?1").bind(bound),
        db
          .prepare(
            `select id, name, allowed_event_types, signing_key_version, signing_key, signing_key_previous,
                    previous_valid_until
             from source where tenant_id = ${tenant} and deleted_at is null`,
          )
          .bind(bound),
        db
          .prepare(
            `select s.id, s.endpoint_id, s.event_type_pattern, s.filter, s.entitlement_scope, s.schema_version,
                    json_extract(p.policy, '$.max_age_seconds') as max_age_seconds,
                    e.disabled_at is not null as endpoint_disabled, e.route, e.lane_generation
             from subscription s
             cross join endpoint e on e.tenant_id = s.tenant_id and e.id = s.endpoint_id
             cross join retry_policy p
               on p.tenant_id = s.tenant_id and p.id = coalesce(s.retry_policy_id, e.retry_policy_id)
             where s.tenant_id = ${tenant}
               and s.deleted_at is null and s.disabled_at is null and e.deleted_at is null
             order by s.created_at, s.id`,
          )
          .bind(bound),
        // Primary key: the tenant's, of which there are a bounded number.
        db
          .prepare(
            `select name, required_scope, schema_version, json_schema, retired_at is not null as is_retired
             from event_type where tenant_id = ${tenant}`,
          )
          .bind(bound),
      ]);
      const row = tenants!.results[0];
      if (!row) return null;
      const key = keys!.results[0];
      return {
        tenantId: row["id"] as string,
        plan: row["plan"] as Plan,
        revision: row["revision"] as number,
        isSuspended: row["status"] !== "active",
        key: key ? { scope: key["scope"] as "admin", sourceId: key["source_id"] as string | null } : null,
        sources: sources!.results.map((source) => ({
          id: source["id"] as string,
          name: source["name"] as string,
          allowedEventTypes: JSON.parse(source["allowed_event_types"] as string),
          keys: {
            version: source["signing_key_version"] as number,
            current: toBytes(source["signing_key"]),
            previous: toBytes(source["signing_key_previous"]),
            previousValidUntil: source["previous_valid_until"] as number | null,
          },
        })),
        subscriptions: subscriptions!.results.map((subscription) => ({
          id: subscription["id"] as string,
          endpointId: subscription["endpoint_id"] as string,
          eventTypePattern: subscription["event_type_pattern"] as string,
          filter: subscription["filter"] as string | null,
          entitlementScope: toWords(subscription["entitlement_scope"] as string | null),
          schemaVersion: subscription["schema_version"] as number | null,
          maxAgeSeconds: subscription["max_age_seconds"] as number,
          endpointDisabled: subscription["endpoint_disabled"] === 1,
          lane: subscription["route"] === "lane" ? { generation: subscription["lane_generation"] as number } : null,
        })),
        eventTypes: eventTypes!.results.map((version) => ({
          name: version["name"] as string,
          requiredScope: version["required_scope"] as string | null,
          schemaVersion: version["schema_version"] as number,
          jsonSchema: version["json_schema"] as string | null,
          isRetired: version["is_retired"] === 1,
        })),
        requiresRegistration: row["require_registered_types"] === 1,
      };
    },

    /** Whether what is remembered of a tenant is the present. Primary key; null when there is no such tenant (any more). */
    async findTenantRevision(tenantId: string): Promise<number | null> {
      const sql = "select revision from tenant where id = ? and deleted_at is null";
      const row = await db.prepare(sql).bind(tenantId).first<{ revision: number }>();
      return row?.revision ?? null;
    },
  };
}

/** A blob comes out of D1 as an array of numbers. */
function toBytes(blob: unknown): Uint8Array | null {
  return blob === null ? null : new Uint8Array(blob as ArrayLike<number>);
}
