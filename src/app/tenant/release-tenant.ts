import { releaseHeld, type ReleaseHeldDeps } from "../endpoint/release-held.ts";

export interface ReleaseTenantDeps extends ReleaseHeldDeps {
  /** Up to `limit` endpoints for which something waits; `lane` is null where queues deliver. */
  listWaitingEndpoints(
    tenantId: string,
    limit: number,
  ): Promise<{ endpointId: string; lane: { generation: number } | null }[]>;
  wakeLane(lane: { tenantId: string; endpointId: string; generation: number }): void;
}

/** Endpoints set going at once. The watchdog finds what is held for others, and lanes look for themselves each minute. */
const AT_ONCE = 100;

/** Lets go on what was held while the tenant was suspended. Can be done again where it stopped. */
export async function releaseTenant(deps: ReleaseTenantDeps, tenantId: string): Promise<void> {
  for (const { endpointId, lane } of await deps.listWaitingEndpoints(tenantId, AT_ONCE)) {
    await releaseHeld(deps, tenantId, endpointId);
    if (lane) deps.wakeLane({ tenantId, endpointId, ...lane });
  }
}
