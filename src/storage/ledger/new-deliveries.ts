import { LANE_KEY } from "./lane-key.ts";

/** Where the deliveries to be made are found: tables, and expressions over them. */
interface Given {
  from: string;
  eventId: string;
  endpointId: string;
  subscriptionId: string;
  /** Of the payload, null for the event's own; and why it cannot be had, null where it can. */
  schemaVersion: string;
  versionFault: string;
  /** What its filter cost. Null without one. */
  filterMs: string;
  filterSteps: string;
  /** Orders those of one lane. */
  place: string;
}

/**
 * Makes deliveries of tenant ?1. Route, birth status, policy and lane are read from the endpoint's row here, and events through
 * theirs: one that is not there, because its key was taken, brings none. A lane's tail is computed in the insert. For an
 * endpoint that is disabled or deleted, a version that cannot be had, or an event that is erased, they are born failed: on
 * record, and sent to nobody. Whoever changes a column that is read here of an endpoint or its subscriptions, but for a
 * deletion, calls `owedToEndpoint` first.
 */
export function insertDeliveries({
  from,
  eventId,
  endpointId,
  subscriptionId,
  schemaVersion,
  versionFault,
  filterMs,
  filterSteps,
  place,
}: Given): string {
  return `insert into delivery (tenant_id, event_id, endpoint_id, subscription_id, status, lane_key, lane_position,
      retry_policy_id, created_at, scheduled_at, next_attempt_at, terminal_at, final_outcome, schema_version,
      filter_match_ms, filter_match_steps, relay_region, expires_at)
    select tenant_id, event_id, endpoint_id, subscription_id, iif(ended_at is null, 'pending', 'failed'), lane_key,
      iif(lane_key is null, null, max(0, coalesce((
        select max(x.lane_position) from delivery x where x.endpoint_id = n.endpoint_id and x.lane_key = n.lane_key
          and x.terminal_at is null and x.lane_key is not null), 0))
        + row_number() over (partition by endpoint_id, lane_key order by place)),
      policy_id, relayed_at, iif(lane_key is null, relayed_at, null), iif(ended_at is null, relayed_at, null),
      ended_at, final_outcome, schema_version, filter_match_ms, filter_match_steps, relay_region, expires_at
    from (
      select ${place} as place, e.tenant_id, e.id as event_id, ep.id as endpoint_id, s.id as subscription_id,
        coalesce(${schemaVersion}, e.schema_version) as schema_version,
        case when ep.disabled_at is not null or ${versionFault} is not null then e.relayed_at
          else coalesce(ep.deleted_at, e.payload_erased_at) end as ended_at,
        case when ep.disabled_at is not null then 'endpoint_disabled'
          when ${versionFault} is not null then ${versionFault}
          when ep.deleted_at is not null then 'endpoint_deleted'
          when e.payload_erased_at is not null then 'payload_missing' end as final_outcome,
        iif(ep.disabled_at is null and ep.deleted_at is null and e.payload_erased_at is null and ${versionFault} is null,
          ${LANE_KEY}, null) as lane_key,
        coalesce(s.retry_policy_id, ep.retry_policy_id) as policy_id, ${filterMs} as filter_match_ms,
        ${filterSteps} as filter_match_steps, e.relayed_at, e.relay_region, e.expires_at
      from ${from}
      cross join event e on e.tenant_id = ?1 and e.id = ${eventId}
      cross join endpoint ep on ep.tenant_id = ?1 and ep.id = ${endpointId}
      cross join subscription s on s.tenant_id = ?1 and s.id = ${subscriptionId}) n
    where true
    on conflict do nothing`;
}
