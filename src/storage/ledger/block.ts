import type { TenantDeliveryRef } from "./deliver.ts";

/** Of a block `b`: its head has not expired. Nobody can see or skip one that has, so it holds up nobody either. */
export function isShown(now: string): string {
  return `exists (select 1 from delivery h where h.tenant_id = b.tenant_id and h.event_id = b.event_id
    and h.endpoint_id = b.endpoint_id and h.replay_no = b.replay_no and h.expires_at > ${now})`;
}

/**
 * Rule 9: written with the end of the head, by what the endpoint's row says then. Keyless deliveries block nobody. Stands
 * right behind the statement that ends the head, and does nothing where that changed nothing: an end that is told a second
 * time must not stop a lane that was let go on meanwhile.
 */
export function blockLane(db: D1Database, ref: TenantDeliveryRef, now: number): D1PreparedStatement {
  return db
    .prepare(
      `insert into lane_block (tenant_id, endpoint_id, lane_key, event_id, replay_no, blocked_at)
       select d.tenant_id, d.endpoint_id, d.lane_key, d.event_id, d.replay_no, ?5
       from delivery d cross join endpoint e on e.tenant_id = d.tenant_id and e.id = d.endpoint_id
       where changes() > 0 and d.tenant_id = ?1 and d.event_id = ?2 and d.endpoint_id = ?3 and d.replay_no = ?4
         and d.status in ('dead_letter', 'expired') and d.terminal_at = ?5 and d.lane_key <> d.event_id
         and e.on_exhausted = 'block' and e.route = 'lane'
       on conflict (endpoint_id, lane_key) do update set event_id = excluded.event_id,
         replay_no = excluded.replay_no, blocked_at = excluded.blocked_at
       where not exists (select 1 from delivery h where h.tenant_id = lane_block.tenant_id
         and h.event_id = lane_block.event_id and h.endpoint_id = lane_block.endpoint_id
         and h.replay_no = lane_block.replay_no and h.expires_at > ?5)`,
    )
    .bind(ref.tenantId, ref.eventId, ref.endpointId, ref.replayNo, now);
}
