import type { TenantDeliveryRef } from "../../core/ids.ts";
import { hasOwnKey } from "./lane-key.ts";

/**
 * Blocks `b` of dead heads `h` that are still shown: one that has expired stops nothing any more, whether or not its row has
 * been deleted. To be followed by conditions on `b`; `now` is a bound parameter. lane_block, and delivery's primary key.
 */
export const standingBlocks = (now: string) => `lane_block b cross join delivery h
  on h.tenant_id = b.tenant_id and h.event_id = b.event_id and h.endpoint_id = b.endpoint_id
    and h.replay_no = b.replay_no and h.expires_at > ${now}`;

/**
 * Rows of lanes `b` that wait and may have an age: what was let through in another mode stands at positions up to 0, and but for
 * these only a head can have been. A range of delivery_lane however much waits behind it, where `b` is a subquery of its own: else
 * the planner begins with the endpoint's whole lane.
 */
export const MAY_HAVE_AGE = `delivery.endpoint_id = b.endpoint_id and delivery.lane_key = b.lane_key
  and delivery.terminal_at is null and delivery.lane_key is not null
  and delivery.lane_position <= max(0, (select min(x.lane_position) from delivery x where x.endpoint_id = b.endpoint_id
    and x.lane_key = b.lane_key and x.terminal_at is null and x.lane_key is not null))
  and delivery.status = 'pending' and delivery.scheduled_at is not null`;

/**
 * Of the lane that this dead head blocks: whatever waits there begins its age anew, where it had one (it was let through
 * before the lane was blocked, in another mode). Waiting behind a block uses up nobody's age. To be done before the block goes.
 */
export function redateBehind(db: D1Database, ref: TenantDeliveryRef, now: number): D1PreparedStatement {
  return db
    .prepare(
      `update delivery set scheduled_at = ?5
       from (select distinct endpoint_id, lane_key from lane_block
             where endpoint_id = ?3 and tenant_id = ?1 and event_id = ?2 and replay_no = ?4) b
       where ${MAY_HAVE_AGE}`,
    )
    .bind(ref.tenantId, ref.eventId, ref.endpointId, ref.replayNo, now);
}

/**
 * Written with the end of the head, by what the endpoint's row says then. Keyless deliveries block nobody; of two that
 * were heads together, before their lane became one, each asks for itself. Stands right behind the statement that ends the
 * head, and does nothing where that changed nothing: an end that is told a second time must not stop a lane that was let go on
 * meanwhile.
 */
export function blockLane(db: D1Database, ref: TenantDeliveryRef, now: number): D1PreparedStatement {
  return db
    .prepare(
      `insert into lane_block (tenant_id, endpoint_id, lane_key, event_id, replay_no, blocked_at)
       select d.tenant_id, d.endpoint_id, d.lane_key, d.event_id, d.replay_no, ?5
       from delivery d cross join endpoint e on e.tenant_id = d.tenant_id and e.id = d.endpoint_id
       where changes() > 0 and d.tenant_id = ?1 and d.event_id = ?2 and d.endpoint_id = ?3 and d.replay_no = ?4
         and d.status in ('dead_letter', 'expired') and d.terminal_at = ?5 and not ${hasOwnKey("d")}
         and e.on_exhausted = 'block' and e.route = 'lane'
       on conflict do nothing`,
    )
    .bind(ref.tenantId, ref.eventId, ref.endpointId, ref.replayNo, now);
}
