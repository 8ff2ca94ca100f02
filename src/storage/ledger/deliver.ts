import type { DeliveryStatus } from "../../core/model.ts";
import type { DeliveryRef } from "../../core/ids.ts";
import type { OutboundEvent } from "../../core/outbound.ts";
import type { RetryPolicy } from "../../core/retry-policy.ts";
import { PAUSED_AT, RESUMED_AT } from "./suspension.ts";

export type TenantDeliveryRef = DeliveryRef & { tenantId: string };

/** A delivery with all that an attempt needs, as the ledger had it at one moment. */
export interface LoadedDelivery extends TenantDeliveryRef {
  status: DeliveryStatus;
  attemptCount: number;
  failureCount: number;
  relayFaultCount: number;
  nextAttemptAt: number | null;
  lastAttemptAt: number | null;
  lockedUntil: number | null;
  token: string | null;
  /** Where its age begins; null while its lane has not let it through. */
  scheduledAt: number | null;
  expiresAt: number;
  laneKey: string | null;
  lanePosition: number | null;
  holdUntil: number | null;
  policy: RetryPolicy;
  event: OutboundEvent & { payloadRef: string; payloadSize: number; payloadSha256: string; payloadErased: boolean };
  endpoint: {
    url: string;
    revision: number;
    payloadFormat: "envelope" | "raw";
    headers: string;
    timeoutMs: number;
    /** Also while its tenant is suspended. */
    pausedAt: number | null;
    resumedAt: number | null;
    disabledAt: number | null;
    deletedAt: number | null;
    route: "queue" | "lane";
    laneGeneration: number;
    /** From when on one more failure may disable it; null while nothing does. */
    disablesAt: number | null;
    /** Since when it has had nothing but failures. */
    failingSince: number | null;
  };
  secrets: { id: string; wrappedKey: Uint8Array; activeUntil: number | null }[];
}

export interface Claim extends TenantDeliveryRef {
  attemptNumber: number;
  /** Chosen by the claimant before the write, so that a claim whose answer was lost can be taken up again. */
  token: string;
  endpointRevision: number;
  signingSecretIds: string[];
  workerId: string;
  relayRegion: string | null;
  leaseMs: number;
}

/** What an attempt needs of an endpoint `ep` of tenant `t`. */
export const ENDPOINT_COLUMNS = `ep.url, ep.revision, ep.payload_format, ep.timeout_ms, ep.disabled_at, ep.deleted_at,
  ${PAUSED_AT} as paused_at, ${RESUMED_AT} as resumed_at, ep.route, ep.lane_generation,
  ep.failing_since, ep.failing_since + ep.disable_after_failing_seconds * 1000 as disables_at`;

/** What an attempt needs of a delivery `d`. A delivery of a lane has no age before it was let through. */
export const LOADED_COLUMNS = `d.tenant_id, d.event_id, d.endpoint_id, d.replay_no, d.status, d.attempt_count,
  d.failure_count, d.relay_fault_count, d.next_attempt_at, d.last_attempt_at, d.locked_until, d.token,
  coalesce(d.scheduled_at, iif(d.lane_key is null or d.hold_until is not null, d.created_at, null)) as scheduled_at,
  d.expires_at, d.lane_key, d.lane_position, d.hold_until, p.policy,
  e.type, e.schema_version, e.ordering_key, e.cause_event_id, e.occurred_at, e.relayed_at,
  e.content_type, e.content_encoding, e.payload_is_json, e.hop_count, e.payload_ref, e.payload_size,
  hex(e.payload_sha256) as payload_sha256, e.payload_erased_at, s.name as source_name,
  ${ENDPOINT_COLUMNS}`;

export const LOADED_JOINS = `cross join event e on e.tenant_id = d.tenant_id and e.id = d.event_id
  cross join source s on s.tenant_id = e.tenant_id and s.id = e.source_id
  cross join endpoint ep on ep.tenant_id = d.tenant_id and ep.id = d.endpoint_id
  cross join tenant t on t.id = d.tenant_id
  cross join retry_policy p on p.tenant_id = d.tenant_id and p.id = d.retry_policy_id`;

const KEY = "tenant_id = ?1 and event_id = ?2 and endpoint_id = ?3 and replay_no = ?4";

export function createDeliverLedger(db: D1Database) {
  return {
    /** The deliveries that exist among `refs`, in one trip. Primary keys throughout. `region` is the ledger's, if known. */
    async loadDeliveries(refs: TenantDeliveryRef[]): Promise<{ deliveries: LoadedDelivery[]; region: string | null }> {
      const keys = JSON.stringify(refs.map((r) => [r.tenantId, r.eventId, r.endpointId, r.replayNo]));
      const endpoints = JSON.stringify(
        [...new Set(refs.map((r) => `${r.tenantId}/${r.endpointId}`))].map((r) => r.split("/")),
      );
      const [deliveries, ofEndpoints] = await db.batch<Record<string, any>>([
        db
          .prepare(
            `select ${LOADED_COLUMNS}
             from json_each(?1) j
             cross join delivery d on d.tenant_id = j.value ->> 0 and d.event_id = j.value ->> 1
               and d.endpoint_id = j.value ->> 2 and d.replay_no = j.value ->> 3
             ${LOADED_JOINS}`,
          )
          .bind(keys),
        selectOfEndpoints(db, endpoints),
      ]);
      return {
        deliveries: deliveries!.results.map((row) => toLoadedDelivery(row, ofEndpoints!.results)),
        region: deliveries!.meta.served_by_region ?? null,
      };
    },

    /**
     * Claims what is still pending, due, queue-routed and allowed by its endpoint *now*, and opens its attempt, in one
     * batch. Gives back the tokens that hold a claim. Doing it again with the same tokens changes nothing.
     */
    async claimDeliveries(claims: Claim[], now: number): Promise<Set<string>> {
      const results = await db.batch<{ token: string }>(
        claims.flatMap((claim) => [claimDelivery(db, claim, now), openAttempt(db, claim, now)]),
      );
      return new Set(results.flatMap(({ results: rows }) => rows.map(({ token }) => token)));
    },

    /** Holds deliveries whose endpoint is paused or disabled, or their tenant suspended: out of the due index, until it goes on or their time is up. */
    async holdDeliveries(holds: (TenantDeliveryRef & { holdUntil: number })[]): Promise<void> {
      await db.batch(
        holds.map(({ tenantId, eventId, endpointId, replayNo, holdUntil }) =>
          db
            .prepare(
              `update delivery set lane_key = ' ' || event_id, lane_position = replay_no, hold_until = ?5
               where ${KEY} and status = 'pending' and lane_key is null
                 and exists (select 1 from endpoint e cross join tenant t on t.id = e.tenant_id
                   where e.tenant_id = ?1 and e.id = ?3
                     and (e.paused_at is not null or e.disabled_at is not null or t.status <> 'active'))`,
            )
            .bind(tenantId, eventId, endpointId, replayNo, holdUntil),
        ),
      );
    },

    /** Ends deliveries for which no request will be made any more. Only `pending` ones: an attempt in flight ends itself. */
    async endDeliveries(
      ends: (TenantDeliveryRef & { status: "failed" | "expired" | "cancelled"; finalOutcome: string })[],
      now: number,
    ): Promise<void> {
      await db.batch(
        ends.map(({ tenantId, eventId, endpointId, replayNo, status, finalOutcome }) =>
          db
            .prepare(
              `update delivery set status = ?5, final_outcome = ?6, terminal_at = ?7, next_attempt_at = null,
                 hold_until = null, last_error_class = iif(?6 = 'destination_blocked', 'blocked_destination', last_error_class)
               where ${KEY} and status = 'pending'`,
            )
            .bind(tenantId, eventId, endpointId, replayNo, status, finalOutcome, now),
        ),
      );
    },
  };
}

/**
 * What endpoints need once for all their deliveries: signing secrets, and headers of their own where they have any. Given as
 * JSON of `[tenant, endpoint]` pairs. Primary keys.
 */
export function selectOfEndpoints(db: D1Database, endpoints: string): D1PreparedStatement {
  return db
    .prepare(
      `select x.tenant_id, x.endpoint_id, x.id, hex(x.wrapped_key) as wrapped_key, x.active_until, null as headers
       from json_each(?1) j
       cross join signing_secret x on x.tenant_id = j.value ->> 0 and x.endpoint_id = j.value ->> 1
       union all
       select ep.tenant_id, ep.id, null, null, null, ep.headers
       from json_each(?1) j
       cross join endpoint ep on ep.tenant_id = j.value ->> 0 and ep.id = j.value ->> 1
       where ep.headers <> '{}'`,
    )
    .bind(endpoints);
}

/** Rule 5: the row and its endpoint prove everything here, whatever the claimant believed. */
function claimDelivery(db: D1Database, claim: Claim, now: number): D1PreparedStatement {
  return db
    .prepare(
      `update delivery set status = 'processing', token = ?5, attempt_count = ?6, last_attempt_at = ?7,
         locked_until = ?8, next_attempt_at = ?8
       where ${KEY} and (token = ?5 or (
         status = 'pending' and lane_key is null and attempt_count = ?6 - 1 and next_attempt_at <= ?7
         and exists (
           select 1 from endpoint e cross join tenant t on t.id = e.tenant_id and t.status = 'active'
           where e.tenant_id = ?1 and e.id = ?3 and e.revision = ?9 and e.route = 'queue'
             and e.paused_at is null and e.disabled_at is null and e.deleted_at is null)))
       returning token`,
    )
    .bind(
      claim.tenantId,
      claim.eventId,
      claim.endpointId,
      claim.replayNo,
      claim.token,
      claim.attemptNumber,
      now,
      now + claim.leaseMs,
      claim.endpointRevision,
    );
}

export function openAttempt(db: D1Database, claim: Claim, now: number): D1PreparedStatement {
  return db
    .prepare(
      `insert into attempt (tenant_id, event_id, endpoint_id, replay_no, attempt_number, requested_at, worker_id,
         relay_region, endpoint_revision, signing_secret_ids)
       select tenant_id, event_id, endpoint_id, replay_no, ?6, ?7, ?8, ?11, ?9, ?10
       from delivery where ${KEY} and token = ?5
       on conflict do nothing`,
    )
    .bind(
      claim.tenantId,
      claim.eventId,
      claim.endpointId,
      claim.replayNo,
      claim.token,
      claim.attemptNumber,
      now,
      claim.workerId,
      claim.endpointRevision,
      JSON.stringify(claim.signingSecretIds),
      claim.relayRegion,
    );
}

/** `ofEndpoints` is what `selectOfEndpoints` found. */
export function toLoadedDelivery(row: Record<string, any>, ofEndpoints: Record<string, any>[]): LoadedDelivery {
  const own = toOwn(ofEndpoints, row["tenant_id"], row["endpoint_id"]);
  return {
    tenantId: row["tenant_id"],
    eventId: row["event_id"],
    endpointId: row["endpoint_id"],
    replayNo: row["replay_no"],
    status: row["status"],
    attemptCount: row["attempt_count"],
    failureCount: row["failure_count"],
    relayFaultCount: row["relay_fault_count"],
    nextAttemptAt: row["next_attempt_at"],
    lastAttemptAt: row["last_attempt_at"],
    lockedUntil: row["locked_until"],
    token: row["token"],
    scheduledAt: row["scheduled_at"],
    expiresAt: row["expires_at"],
    laneKey: row["lane_key"],
    lanePosition: row["lane_position"],
    holdUntil: row["hold_until"],
    policy: JSON.parse(row["policy"]),
    event: {
      id: row["event_id"],
      type: row["type"],
      sourceName: row["source_name"],
      schemaVersion: row["schema_version"],
      orderingKey: row["ordering_key"],
      causeEventId: row["cause_event_id"],
      occurredAt: row["occurred_at"],
      relayedAt: row["relayed_at"],
      contentType: row["content_type"],
      contentEncoding: row["content_encoding"],
      payloadIsJson: row["payload_is_json"] === 1,
      hopCount: row["hop_count"],
      payloadRef: row["payload_ref"],
      payloadSize: row["payload_size"],
      payloadSha256: row["payload_sha256"].toLowerCase(),
      payloadErased: row["payload_erased_at"] !== null,
    },
    endpoint: toLoadedEndpoint(row, own),
    secrets: own.secrets,
  };
}

export function toLoadedEndpoint(
  row: Record<string, any>,
  own: Pick<LoadedDelivery["endpoint"], "headers">,
): LoadedDelivery["endpoint"] {
  return {
    url: row["url"],
    revision: row["revision"],
    payloadFormat: row["payload_format"],
    headers: own.headers,
    timeoutMs: row["timeout_ms"],
    pausedAt: row["paused_at"],
    resumedAt: row["resumed_at"],
    route: row["route"],
    laneGeneration: row["lane_generation"],
    disabledAt: row["disabled_at"],
    deletedAt: row["deleted_at"],
    disablesAt: row["disables_at"],
    failingSince: row["failing_since"],
  };
}

/** Of what `selectOfEndpoints` found, one endpoint's. */
export function toOwn(
  ofEndpoints: Record<string, any>[],
  tenantId: string,
  endpointId: string,
): Pick<LoadedDelivery, "secrets"> & Pick<LoadedDelivery["endpoint"], "headers"> {
  const own = ofEndpoints.filter((found) => found["tenant_id"] === tenantId && found["endpoint_id"] === endpointId);
  return {
    headers: own.find(({ headers }) => headers !== null)?.["headers"] ?? "{}",
    secrets: own
      .filter(({ id }) => id !== null)
      .map((secret) => ({
        id: secret["id"],
        wrappedKey: Uint8Array.from((secret["wrapped_key"] as string).match(/../g) ?? [], (pair) => parseInt(pair, 16)),
        activeUntil: secret["active_until"],
      })),
  };
}
