import { owedToEndpoint } from "./fan-out.ts";
import { raiseDisabled } from "./raise.ts";

/** Who is disabled, and why. `url` is what it must still have, null for whatever it has. */
export interface Disabling {
  tenantId: string;
  endpointId: string;
  url: string | null;
  reason: string;
  now: number;
  /** The event whose delivery does it; null for an operator. */
  by: string | null;
}

/** A further condition on the endpoint's row, with parameters from ?6 on. */
export interface Condition {
  sql: string;
  parameters: (string | number)[];
}

/**
 * The one way in which an endpoint is disabled: under a new revision of its own and of its tenant, and only if it is not yet.
 * Clocks run on while it is: those that a pause had stopped run from here, and not as if there had been none. Behind the last
 * of these statements `changes()` is 0 when it was not disabled by them.
 */
export function disableEndpoint(
  db: D1Database,
  disabling: Disabling,
  condition: Condition = { sql: "true", parameters: [] },
): D1PreparedStatement[] {
  const { tenantId, endpointId, url, reason, now } = disabling;
  return [
    owedToEndpoint(db, tenantId, endpointId),
    raiseDisabled(db, disabling, condition),
    db
      .prepare(
        `update endpoint set disabled_at = ?4, last_disabled_at = ?4, disabled_reason = ?5, revision = revision + 1,
           resumed_at = iif(paused_at is null, resumed_at, ?4)
         where tenant_id = ?1 and id = ?2 and url = coalesce(?3, url) and disabled_at is null and deleted_at is null
           and ${condition.sql}`,
      )
      .bind(tenantId, endpointId, url, now, reason, ...condition.parameters),
    db.prepare("update tenant set revision = revision + 1 where id = ? and changes() > 0").bind(tenantId),
  ];
}
