/**
 * How a suspended tenant `t` shows on its endpoint `ep` to whoever delivers: as a pause (docs/adr/0008). The tenant's row is
 * all there is to it, so nothing has to be kept in step.
 */
export const PAUSED_AT = "coalesce(ep.paused_at, iif(t.status = 'active', null, coalesce(t.suspended_at, 0)))";

/** Where ages begin anew: the end of the latest pause, of the endpoint or of all of its tenant's. */
export const RESUMED_AT = "nullif(max(coalesce(ep.resumed_at, 0), coalesce(t.resumed_at, 0)), 0)";
