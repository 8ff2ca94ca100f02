import { RETRY_KEY_PREFIX } from "../../core/lane.ts";

/**
 * The lane of a new delivery of event `e` to endpoint `ep`: the endpoint's one lane when strict, the ordering
 * key's when keyed, one of its own when nothing orders it but its endpoint is routed to a lane; null for queues. The space
 * keeps one of its own apart from every ordering key, which cannot hold one.
 */
export const LANE_KEY = `case
  when ep.route = 'queue' then null
  when ep.ordering_mode = 'strict' then ''
  when ep.ordering_mode = 'keyed' and e.ordering_key is not null then e.ordering_key
  else ' ' || e.id end`;

/** Of a delivery that nothing orders, once it has failed: behind all that have not been tried. */
export const retryKey = (eventId: string) => `'${RETRY_KEY_PREFIX}' || ${eventId}`;

/** Whether row `d` has a lane of its own, of either kind. */
export const hasOwnKey = (d: string) => `${d}.lane_key in (' ' || ${d}.event_id, ${retryKey(`${d}.event_id`)})`;

/** The lane of a delivery `d` that is open already, when its endpoint `ep` is routed anew. */
export const LANE_KEY_ANEW = `iif(d.attempt_count > 0 and d.status = 'pending' and ${LANE_KEY} = ' ' || e.id,
  ${retryKey("e.id")}, ${LANE_KEY})`;
