import { RELAY_SOURCE_NAME, relaySourceId } from "../../core/relay-source.ts";
import { TEST_EVENT_TYPE, testSubscriptionId } from "../../core/test-event.ts";
import type { Event } from "../../core/model.ts";
import type { RetryPolicy } from "../../core/retry-policy.ts";
import { toRetryPolicyRow } from "../config/retry-policies.ts";
import { openAttempt, type Claim } from "./deliver.ts";
import {
  DELIVERY_KEY_COLUMNS,
  ENDPOINT_COLUMNS,
  selectOfEndpoints,
  toDeliveryKeys,
  toLoadedEndpoint,
  toOwn,
} from "./loaded-delivery.ts";

/** That delivery `d` of event `e` is a test send, and no lane's business. */
export const IS_TEST_SEND = `(e.type = '${TEST_EVENT_TYPE}' and d.replay_no = 0)`;

/** Test sends: an endpoint is read and a delivery written by hand, since nothing was matched. */
export function createTestSendLedger(db: D1Database) {
  return {
    /** The endpoint as it is now, with all that a request to it needs. Null when there is none. Primary keys. */
    async loadTestTarget(tenantId: string, endpointId: string) {
      const sourceId = relaySourceId(tenantId);
      const [endpoints, ofEndpoint, sources] = await db.batch<Record<string, any>>([
        db
          .prepare(
            `select ${ENDPOINT_COLUMNS}, p.policy, t.status as tenant_status from endpoint ep
             cross join tenant t on t.id = ep.tenant_id
             cross join retry_policy p on p.tenant_id = ep.tenant_id and p.id = ep.retry_policy_id
             where ep.tenant_id = ? and ep.id = ? and ep.deleted_at is null`,
          )
          .bind(tenantId, endpointId),
        selectOfEndpoints(db, JSON.stringify([[tenantId, endpointId]])),
        db
          .prepare(`select ${DELIVERY_KEY_COLUMNS} from source s where s.tenant_id = ? and s.id = ?`)
          .bind(tenantId, sourceId),
      ]);
      const row = endpoints!.results[0];
      if (!row) return null;
      const own = toOwn(ofEndpoint!.results, tenantId, endpointId);
      return {
        endpoint: toLoadedEndpoint(row, own),
        secrets: own.secrets,
        sourceSignature:
          row["source_signatures"] === 1 ? { sourceId, keys: toDeliveryKeys(sources!.results[0] ?? {}) } : null,
        policy: JSON.parse(row["policy"]) as RetryPolicy,
        isSuspended: row["tenant_status"] !== "active",
        region: endpoints!.meta.served_by_region ?? null,
      };
    },

    /**
     * The event, its delivery already claimed, and its attempt opened, in one batch: queue, lane and watchdog see a request
     * under way, and its lease. False, and nothing stored, when the endpoint is not as `claim.endpointRevision` says, or the
     * tenant is suspended. Doing it again changes nothing. Source and subscription are born deleted: they are listed nowhere,
     * match nothing and take no name.
     */
    async insertTestSend(claim: Claim, event: Event, policy: RetryPolicy, now: number): Promise<boolean> {
      const { tenantId, endpointId } = claim;
      const policyRow = await toRetryPolicyRow(policy);
      const target = `from endpoint ep cross join tenant t on t.id = ep.tenant_id and t.status = 'active'
        where ep.tenant_id = ?1 and ep.id = ?2 and ep.revision = ?3 and ep.deleted_at is null`;
      const insert = (into: string, values: string, ...bound: (string | number | null)[]) =>
        db
          .prepare(`insert into ${into} select ${values} ${target} on conflict do nothing`)
          .bind(tenantId, endpointId, claim.endpointRevision, ...bound);
      const results = await db.batch<Record<string, any>>([
        insert(
          "source (tenant_id, id, name, allowed_event_types, created_at, deleted_at)",
          "ep.tenant_id, ?4, ?5, '[]', ?6, ?6",
          relaySourceId(tenantId),
          RELAY_SOURCE_NAME,
          now,
        ),
        insert(
          "subscription (tenant_id, id, endpoint_id, event_type_pattern, created_at, deleted_at)",
          "ep.tenant_id, ?4, ep.id, ?5, ?6, ?6",
          testSubscriptionId(endpointId),
          TEST_EVENT_TYPE,
          now,
        ),
        insert("retry_policy (tenant_id, id, policy)", "ep.tenant_id, ?4, ?5", policyRow.id, policyRow.policy),
        insert(
          `event (tenant_id, id, source_id, type, payload_ref, payload_sha256, payload_size, payload_is_json, content_type,
             occurred_at, relayed_at, relay_region, expires_at, dispatched_at, delivery_count)`,
          "ep.tenant_id, ?4, ?5, ?6, ?7, unhex(?8), ?9, 1, ?10, ?11, ?11, ?12, ?13, ?11, 1",
          event.id,
          event.sourceId,
          event.type,
          event.payloadRef,
          event.payloadSha256,
          event.payloadSize,
          event.contentType,
          event.relayedAt,
          event.relayRegion,
          event.expiresAt,
        ),
        db
          .prepare(
            `insert into delivery (tenant_id, event_id, endpoint_id, subscription_id, status, token, locked_until,
               attempt_count, retry_policy_id, created_at, scheduled_at, next_attempt_at, last_attempt_at, relay_region,
               expires_at, schema_version)
             select tenant_id, id, ?3, ?4, 'processing', ?5, ?6, 1, ?7, relayed_at, relayed_at, ?6, ?8, relay_region,
               expires_at, schema_version
             from event where tenant_id = ?1 and id = ?2
             on conflict do nothing`,
          )
          .bind(
            tenantId,
            event.id,
            endpointId,
            testSubscriptionId(endpointId),
            claim.token,
            now + claim.leaseMs,
            policyRow.id,
            now,
          ),
        openAttempt(db, claim, now),
        db.prepare("select 1 from event where tenant_id = ? and id = ?").bind(tenantId, event.id),
      ]);
      return results.at(-1)!.results.length > 0;
    },
  };
}
