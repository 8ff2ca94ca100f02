import { PAUSED_AT } from "./suspension.ts";

type Row = Record<string, any>;

/** How an endpoint's lane is to be run, as of one moment. */
export interface LaneSettings {
  revision: number;
  orderingMode: "unordered" | "strict" | "keyed";
  route: "queue" | "lane";
  concurrencyCap: number | null;
  ratePerSecond: number | null;
  maxHeadHoldSeconds: number | null;
  laneGeneration: number;
  /** Also while its tenant is suspended. */
  pausedAt: number | null;
  disabledAt: number | null;
  deletedAt: number | null;
  /** Since when it is tried with few requests at once, to see whether it answers; null when it is not. */
  quarantinedAt: number | null;
}

/** Primary keys. */
export function selectSettings(db: D1Database, tenantId: string, endpointId: string): D1PreparedStatement {
  return db
    .prepare(
      `select ep.revision, ordering_mode, route, concurrency_cap, rate_limit_per_second, max_head_hold_seconds,
              lane_generation, ${PAUSED_AT} as paused_at, disabled_at, ep.deleted_at,
              ep.quarantined_at
       from endpoint ep cross join tenant t on t.id = ep.tenant_id where ep.tenant_id = ? and ep.id = ?`,
    )
    .bind(tenantId, endpointId);
}

export function toSettings(row: Row): LaneSettings {
  return {
    revision: row["revision"],
    orderingMode: row["ordering_mode"],
    route: row["route"],
    concurrencyCap: row["concurrency_cap"],
    ratePerSecond: row["rate_limit_per_second"],
    maxHeadHoldSeconds: row["max_head_hold_seconds"],
    laneGeneration: row["lane_generation"],
    pausedAt: row["paused_at"],
    disabledAt: row["disabled_at"],
    deletedAt: row["deleted_at"],
    quarantinedAt: row["quarantined_at"],
  };
}
