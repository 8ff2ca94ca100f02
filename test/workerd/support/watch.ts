import { env } from "cloudflare:workers";
import type { WatchDeps } from "../../../src/app/watch/tick.ts";
import { composeWatch } from "../../../src/compose.ts";
import type { Scene } from "./scene.ts";

/** More than all tests together leave in a shard: nobody else's rows keep a tenant's from a page. */
export const EVERYTHING = 1_000_000;

/**
 * The watchdog of a tenant's shard, over the real ledger: `real` as it is, `idle` finding nothing to do. A test puts back what
 * it is about, and with `mine` for its own tenant alone: the other rows are other tests'.
 */
export function createWatchdog({ tenant, context }: Pick<Scene, "tenant" | "context">) {
  const real = composeWatch(env as Env, context.context, tenant.shard);
  const idle: WatchDeps = {
    ...real,
    listOpenParts: async () => [],
    listDue: async () => [],
    listLongRetriesDue: async () => [],
    listExpiredLeases: async () => [],
    listEndedHolds: async () => [],
    listStrandedHolds: async () => ({ endpoints: [], next: null }),
    listOverdueLanes: async () => ({ lanes: [], next: null }),
    listRaisedTenants: async () => [],
    listDueReplayParts: async () => [],
    walkOldEvents: async () => ({ events: [], next: null }),
    reportsUntil: async () => 0,
  };
  const mine = <T extends { tenantId: string }>(rows: T[]) => rows.filter(({ tenantId }) => tenantId === tenant.id);
  return { real, idle, mine };
}
