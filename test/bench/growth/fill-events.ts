import type { DatabaseSync } from "node:sqlite";
import type { FilledTenant } from "./fill-config.ts";

const HOUR_MS = 3_600_000;
/** From acceptance to expiry. */
const RETENTION_MS = 30 * 24 * HOUR_MS;
/** One delivery in so many is a dead letter. */
const DEAD_ONE_IN = 50;

/** Filled events, oldest first, with their numbers from 0. */
const NUMBERED =
  "(select *, cast(substr(idempotency_key, 5) as integer) as i from event where tenant_id = :tenant and type = :type) e";

/**
 * Ended events, at even distances from `from` to `until`, to the tenant's endpoints in turn. The one attempt of each succeeded,
 * or failed for good.
 */
export function insertHistory(
  db: DatabaseSync,
  tenant: FilledTenant,
  { count, from, until }: { count: number; from: number; until: number },
): void {
  if (count === 0) return;
  insertEvents(db, tenant, { count, from, stepMs: (until - from) / count, type: "filled.ended" });
  placeEndpoints(db, tenant.endpoints);
  db.prepare(
    `insert into delivery (tenant_id, event_id, endpoint_id, subscription_id, status, attempt_count, failure_count,
       retry_policy_id, created_at, scheduled_at, last_attempt_at, last_error_class, last_status_code, terminal_at,
       final_outcome, relay_region, expires_at)
     select tenant_id, id, endpoint_id, subscription_id, iif(is_dead, 'dead_letter', 'succeeded'), 1, is_dead,
       :policy, relayed_at, relayed_at, relayed_at + 40, iif(is_dead, 'http_4xx', null), iif(is_dead, 400, 200),
       relayed_at + 60, iif(is_dead, 'rejected', 'delivered'), 'local', expires_at
     from (
       select e.*, x.endpoint_id, x.subscription_id, e.i % ${DEAD_ONE_IN} = 0 as is_dead
       from ${NUMBERED} cross join temp.place x on x.k = e.i % cast(:endpointCount as integer))`,
  ).run({
    tenant: tenant.id,
    type: "filled.ended",
    policy: tenant.retryPolicyId,
    endpointCount: tenant.endpoints.length,
  });
  insertAttempts(db, tenant, "filled.ended");
}

/** Open deliveries of the last two days: half of queues, their retry hours ahead; half in strict lanes behind such a head. */
export function insertBacklog(db: DatabaseSync, tenant: FilledTenant, count: number, now: number): void {
  const strict = tenant.endpoints.filter(({ isStrict }) => isStrict);
  const waiting = tenant.endpoints.filter(({ isStrict }) => !isStrict);
  const inLanes = strict.length > 0 ? Math.floor(count / 2) : 0;
  for (const [endpoints, part] of [
    [strict, inLanes],
    [waiting.length > 0 ? waiting : strict, count - inLanes],
  ] as const) {
    if (part === 0) continue;
    const isLane = endpoints === strict;
    const type = isLane ? "filled.lane" : "filled.waiting";
    const from = now - 48 * HOUR_MS;
    insertEvents(db, tenant, { count: part, from, stepMs: (47 * HOUR_MS) / part, type });
    placeEndpoints(db, endpoints);
    db.prepare(
      `insert into delivery (tenant_id, event_id, endpoint_id, subscription_id, status, lane_key, lane_position,
         attempt_count, failure_count, retry_policy_id, created_at, scheduled_at, next_attempt_at, last_attempt_at,
         last_error_class, last_status_code, relay_region, expires_at)
       select tenant_id, id, endpoint_id, subscription_id, 'pending', iif(:isLane, '', null), iif(:isLane, position, null),
         tried, tried, :policy, relayed_at, iif(tried, relayed_at, null), iif(tried, :dueFrom + cast(i as integer), relayed_at),
         iif(tried, relayed_at + 40, null), iif(tried, 'http_5xx', null), iif(tried, 503, null), 'local', expires_at
       from (
         select *, iif(:isLane, position = 1, 1) as tried from (
           select e.*, x.endpoint_id, x.subscription_id, cast(e.i / :endpointCount as integer) + 1 as position
           from ${NUMBERED} cross join temp.place x on x.k = e.i % cast(:endpointCount as integer)))`,
    ).run({
      tenant: tenant.id,
      type,
      policy: tenant.retryPolicyId,
      isLane: isLane ? 1 : 0,
      dueFrom: now + 6 * HOUR_MS,
      endpointCount: endpoints.length,
    });
    insertAttempts(db, tenant, type);
  }
}

/** Endpoints by number, for a join. */
function placeEndpoints(db: DatabaseSync, endpoints: FilledTenant["endpoints"]): void {
  db.exec("drop table if exists temp.place");
  db.exec("create temp table place (k integer primary key, endpoint_id text, subscription_id text)");
  const insert = db.prepare("insert into temp.place values (?, ?, ?)");
  for (const [k, { id, subscriptionId }] of endpoints.entries()) insert.run(k, id, subscriptionId);
}

function insertEvents(
  db: DatabaseSync,
  tenant: FilledTenant,
  given: { count: number; from: number; stepMs: number; type: string },
): void {
  db.prepare(
    `insert into event (tenant_id, id, source_id, type, idempotency_key, payload_ref, payload_sha256, payload_size,
       payload_is_json, content_type, occurred_at, relayed_at, relay_region, expires_at, dispatched_at, delivery_count)
     with recursive n (i, at) as (
       select 0, cast(:from as integer) union all
       select i + 1, cast(:from + (i + 1) * :stepMs as integer) from n where i + 1 < :count)
     select :tenant, id, :source, :type, 'key-' || i || '-' || :type,
       '30d/' || :tenant || '/' || date(at / 1000, 'unixepoch') || '/' || id || '#0', randomblob(32), 1000,
       1, 'application/json', at, at, 'local', at + ${RETENTION_MS}, at, 1
     from (select i, at, event_id(at) as id from n)`,
  ).run({ ...given, tenant: tenant.id, source: tenant.sourceId });
}

function insertAttempts(db: DatabaseSync, tenant: FilledTenant, type: string): void {
  db.prepare(
    `insert into attempt (tenant_id, event_id, endpoint_id, replay_no, attempt_number, requested_at, responded_at, latency_ms,
       status_code, outcome_class, error_class, response_body_sha256, response_headers_json, worker_id, relay_region,
       endpoint_revision, signing_secret_ids)
     select d.tenant_id, d.event_id, d.endpoint_id, d.replay_no, 1, d.created_at + 40, d.created_at + 60, 20, d.last_status_code,
       case d.last_status_code when 200 then 'success' when 400 then 'rejected' else 'transient' end,
       d.last_error_class, randomblob(32), '{}',
       'b7bd969c-d71f-44ce-80b3-260de0a1b7f9.h24e1ceq.queue', 'local', 1, '["sec_0000000000000000"]'
     from event e cross join delivery d on d.tenant_id = e.tenant_id and d.event_id = e.id and d.attempt_count = 1
     where e.tenant_id = :tenant and e.type = :type`,
  ).run({ tenant: tenant.id, type });
}
