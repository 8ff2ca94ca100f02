import { patternsMatching, type OperationalEventType } from "../../core/event-type.ts";
import { deliveryId } from "../../core/ids.ts";
import type { TenantDeliveryRef } from "./deliver.ts";
import type { Condition, Disabling } from "./disable.ts";

/*
 * Notes of transitions, for the outbox of operational events. Each stands in the batch of its transition, before the statement
 * that makes it and under the same condition: where that moves nothing there is no note, and an answer that was lost and a
 * batch that is done again leave one. Nothing that an operational event's own delivery brings about is noted.
 */

/** Called once a batch, after it, with each tenant for which something was noted. */
export type OutboxBell = (tenantId: string) => void;

/** One row, where the tenant has a subscription that matches; read before anything else. subscription_operational. */
function wanted(type: OperationalEventType): string {
  const patterns = patternsMatching(type).map((pattern) => `'${pattern}'`);
  return `(select 1 from subscription where tenant_id = ?1 and deleted_at is null and disabled_at is null
    and event_type_pattern >= 'hooklane.' and event_type_pattern < 'hooklane/'
    and event_type_pattern in (${patterns.join(", ")}) limit 1)`;
}

/** Of event `e`. */
const IS_OF_PRODUCER = "substr(e.type, 1, 9) <> 'hooklane.'";

function note(type: OperationalEventType, raisedAt: string, id: string, facts: string, from: string): string {
  return `insert into operational_event (tenant_id, raised_at, id, type, facts)
    select ?1, ${raisedAt}, ${id}, '${type}', json_object(${facts}) from ${wanted(type)} cross join ${from}
    on conflict do nothing
    returning tenant_id as raised_for`;
}

export interface Death {
  finalOutcome: string;
  at: number;
  /** Of the attempt that ends it; null for one that ends between attempts. */
  attempt: { statusCode: number | null; errorClass: string | null } | null;
}

/** `moves`: the condition on delivery `d` under which it dies, with `?5` for `value`. */
export function raiseDeadLetter(
  db: D1Database,
  ref: TenantDeliveryRef,
  { finalOutcome, at, attempt }: Death,
  moves: string,
  value: string | number,
): D1PreparedStatement {
  const facts = `'event_id', d.event_id, 'event_type', e.type, 'hop_count', e.hop_count, 'endpoint_id', d.endpoint_id,
    'replay_no', d.replay_no, 'subscription_id', d.subscription_id, 'final_outcome', ?8, 'attempt_count', d.attempt_count,
    'last_status_code', iif(?9, ?10, d.last_status_code), 'last_error_class', iif(?9, ?11, d.last_error_class)`;
  const from = `delivery d cross join event e on e.tenant_id = d.tenant_id and e.id = d.event_id
    where d.tenant_id = ?1 and d.event_id = ?2 and d.endpoint_id = ?3 and d.replay_no = ?4 and ${IS_OF_PRODUCER} and ${moves}`;
  return db
    .prepare(note("hooklane.delivery.dead_letter", "?6", "?7", facts, from))
    .bind(
      ref.tenantId,
      ref.eventId,
      ref.endpointId,
      ref.replayNo,
      value,
      at,
      `dead_letter:${deliveryId(ref)}`,
      finalOutcome,
      attempt === null ? 0 : 1,
      attempt?.statusCode ?? null,
      attempt?.errorClass ?? null,
    );
}

/** Under the condition of `disableEndpoint`, which has the same parameters. */
export function raiseDisabled(
  db: D1Database,
  { tenantId, endpointId, url, reason, now, by }: Disabling,
  condition: Condition,
): D1PreparedStatement {
  const isOfProducer = `exists (select 1 from event e where e.tenant_id = ?1 and e.id = ?${6 + condition.parameters.length}
    and ${IS_OF_PRODUCER})`;
  const from = `endpoint ep where ep.tenant_id = ?1 and ep.id = ?2 and ep.url = coalesce(?3, ep.url)
    and ep.disabled_at is null and ep.deleted_at is null and ${condition.sql} and ${by === null ? "true" : isOfProducer}`;
  // The revision that disabling it makes.
  const id = "'disabled:' || ep.id || ':' || (ep.revision + 1)";
  return db
    .prepare(note("hooklane.endpoint.disabled", "?4", id, "'endpoint_id', ep.id, 'reason', ?5", from))
    .bind(tenantId, endpointId, url, now, reason, ...condition.parameters, ...(by === null ? [] : [by]));
}

/**
 * Notes once that an endpoint has had nothing but failures for a while, with `condition` on its row `ep` and its parameters from
 * ?7 on: the time of failing that was told of stands in the row.
 */
export function raiseFailing(
  db: D1Database,
  {
    tenantId,
    endpointId,
    eventId,
    attempt,
  }: TenantDeliveryRef & {
    attempt: { respondedAt: number; statusCode: number | null; errorClass: string | null };
  },
  condition: Condition,
): D1PreparedStatement[] {
  const facts = `'endpoint_id', ep.id, 'failing_since', ep.failing_since, 'last_status_code', ?4, 'last_error_class', ?5`;
  const from = `endpoint ep cross join event e on e.tenant_id = ?1 and e.id = ?6 and ${IS_OF_PRODUCER}
    where ep.tenant_id = ?1 and ep.id = ?2 and ep.failing_since is not ep.failing_told_since
      and ep.disabled_at is null and ep.deleted_at is null and ${condition.sql}`;
  const id = "'failing:' || ep.id || ':' || ep.failing_since";
  const { respondedAt, statusCode, errorClass } = attempt;
  return [
    db
      .prepare(note("hooklane.endpoint.failing", "?3", id, facts, from))
      .bind(tenantId, endpointId, respondedAt, statusCode, errorClass, eventId, ...condition.parameters),
    db
      .prepare(
        "update endpoint set failing_told_since = failing_since where tenant_id = ? and id = ? and changes() > 0",
      )
      .bind(tenantId, endpointId),
  ];
}

/** Rings for the tenants for which a batch has noted something. */
export function ringFor(bell: OutboxBell, results: D1Result<unknown>[]): void {
  const tenants = results.flatMap(({ results: rows }) =>
    (rows as { raised_for?: string }[]).flatMap(({ raised_for: tenantId }) => tenantId ?? []),
  );
  for (const tenantId of new Set(tenants)) bell(tenantId);
}
