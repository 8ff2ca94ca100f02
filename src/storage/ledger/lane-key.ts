/**
 * The lane of a new delivery of event `e` to endpoint `ep` (rule 4): the endpoint's one lane when strict, the ordering
 * key's when keyed, one of its own when nothing orders it but its endpoint is routed to a lane; null for queues. The space
 * keeps one of its own apart from every ordering key, which cannot hold one.
 */
export const LANE_KEY = `case
  when ep.route = 'queue' then null
  when ep.ordering_mode = 'strict' then ''
  when ep.ordering_mode = 'keyed' and e.ordering_key is not null then e.ordering_key
  else ' ' || e.id end`;
