import { decodeVariants, payloadOfVersion } from "../../core/event-variants.ts";
import type { TenantDeliveryRef } from "../../core/ids.ts";
import type { DeliveryStatus, SourceKeys } from "../../core/model.ts";
import type { OutboundEvent, PayloadFormat } from "../../core/outbound.ts";
import type { RetryPolicy } from "../../core/retry-policy.ts";
import { PAUSED_AT, RESUMED_AT } from "./suspension.ts";

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
    payloadFormat: PayloadFormat;
    headers: string;
    /** Its tenant's. */
    headerPrefix: string | null;
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
  /** The event's source and its delivery keys, where the endpoint asks for its signature. */
  sourceSignature: { sourceId: string; keys: SourceKeys } | null;
}

/** The delivery keys of a source `s`, as text: in a batch a blob would come as a list of numbers. */
export const DELIVERY_KEY_COLUMNS = `s.delivery_key_version, hex(s.delivery_key) as delivery_key,
  hex(s.delivery_key_previous) as delivery_key_previous, s.delivery_key_previous_valid_until`;

export function toDeliveryKeys(row: Record<string, any>): SourceKeys {
  return {
    version: row["delivery_key_version"] ?? 0,
    current: row["delivery_key"] ? fromHex(row["delivery_key"]) : null,
    previous: row["delivery_key_previous"] ? fromHex(row["delivery_key_previous"]) : null,
    previousValidUntil: row["delivery_key_previous_valid_until"],
  };
}

/** What an attempt needs of an endpoint `ep` of tenant `t`. */
export const ENDPOINT_COLUMNS = `ep.url, ep.revision, ep.payload_format, ep.timeout_ms, ep.disabled_at, ep.deleted_at,
  ${PAUSED_AT} as paused_at, ${RESUMED_AT} as resumed_at, ep.route, ep.lane_generation,
  t.header_prefix, ep.source_signatures, ep.failing_since,
  ep.failing_since + ep.disable_after_failing_seconds * 1000 as disables_at`;

/** What an attempt needs of a delivery `d`. A delivery of a lane has no age before it was let through. */
export const LOADED_COLUMNS = `d.tenant_id, d.event_id, d.endpoint_id, d.replay_no, d.status, d.attempt_count,
  d.failure_count, d.relay_fault_count, d.next_attempt_at, d.last_attempt_at, d.locked_until, d.token,
  coalesce(d.scheduled_at, iif(d.lane_key is null or d.hold_until is not null, d.created_at, null)) as scheduled_at,
  d.expires_at, d.lane_key, d.lane_position, d.hold_until, p.policy,
  e.type, coalesce(d.schema_version, e.schema_version) as carried_version, e.schema_version, e.variants,
  e.ordering_key, e.cause_event_id, e.occurred_at, e.relayed_at,
  e.content_type, e.content_encoding, e.payload_is_json, e.hop_count, e.payload_ref, e.payload_size,
  hex(e.payload_sha256) as payload_sha256, e.payload_erased_at, s.name as source_name,
  s.id as source_id, s.delivery_key_version, s.delivery_key_previous_valid_until,
  iif(ep.source_signatures, hex(s.delivery_key), null) as delivery_key,
  iif(ep.source_signatures, hex(s.delivery_key_previous), null) as delivery_key_previous,
  ${ENDPOINT_COLUMNS}`;

export const LOADED_JOINS = `cross join event e on e.tenant_id = d.tenant_id and e.id = d.event_id
  cross join source s on s.tenant_id = e.tenant_id and s.id = e.source_id
  cross join endpoint ep on ep.tenant_id = d.tenant_id and ep.id = d.endpoint_id
  cross join tenant t on t.id = d.tenant_id
  cross join retry_policy p on p.tenant_id = d.tenant_id and p.id = d.retry_policy_id`;

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

/** `ofEndpoints` is what `selectOfEndpoints` found. */
export function toLoadedDelivery(row: Record<string, any>, ofEndpoints: Record<string, any>[]): LoadedDelivery {
  const own = toOwn(ofEndpoints, row["tenant_id"], row["endpoint_id"]);
  const stored = toStoredPayload(row);
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
      schemaVersion: row["carried_version"],
      orderingKey: row["ordering_key"],
      causeEventId: row["cause_event_id"],
      occurredAt: row["occurred_at"],
      relayedAt: row["relayed_at"],
      contentType: row["content_type"],
      contentEncoding: row["content_encoding"],
      payloadIsJson: row["payload_is_json"] === 1,
      hopCount: row["hop_count"],
      ...stored,
      payloadErased: row["payload_erased_at"] !== null,
    },
    endpoint: toLoadedEndpoint(row, own),
    secrets: own.secrets,
    sourceSignature: row["source_signatures"] === 1 ? { sourceId: row["source_id"], keys: toDeliveryKeys(row) } : null,
  };
}

/** Of the version that the delivery carries. */
function toStoredPayload(row: Record<string, any>) {
  const event = {
    schemaVersion: row["schema_version"],
    payloadRef: row["payload_ref"],
    payloadSize: row["payload_size"],
    payloadSha256: row["payload_sha256"].toLowerCase(),
    variants: decodeVariants(row["variants"]),
  };
  const stored = payloadOfVersion(event, row["carried_version"]);
  // Only what is born failed asks for what its event does not carry; a hash that nothing has lets nothing else be sent.
  return stored ?? { payloadRef: event.payloadRef, payloadSize: event.payloadSize, payloadSha256: "" };
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
    headerPrefix: row["header_prefix"],
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
        wrappedKey: fromHex(secret["wrapped_key"]),
        activeUntil: secret["active_until"],
      })),
  };
}

function fromHex(text: string): Uint8Array {
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}
