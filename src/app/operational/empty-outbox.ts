import type { Runtime } from "../runtime.ts";
import { publishOperational, type PublishOperationalDeps } from "./publish-operational.ts";

/** Per tenant, when this isolate last went on with it, and whether it was called again meanwhile. */
export type OutboxRuns = Map<string, { since: number; again: boolean }>;

/** What has not gone on by then has died with the request it was left to. */
const RUN_ENDS_MS = 60_000;

/**
 * Publishes all that is noted for a tenant, once at a time in an isolate: who comes meanwhile has it looked through again. What
 * it leaves undone is the watchdog's. Never fails.
 */
export async function emptyOutbox(
  deps: PublishOperationalDeps & Pick<Runtime, "now">,
  runs: OutboxRuns,
  tenantId: string,
): Promise<void> {
  const running = runs.get(tenantId);
  if (running && deps.now() - running.since < RUN_ENDS_MS) {
    running.again = true;
    return;
  }
  const run = { since: deps.now(), again: true };
  runs.set(tenantId, run);
  try {
    while (run.again) {
      run.again = false;
      do run.since = deps.now();
      while (await publishOperational(deps, tenantId));
    }
  } catch (error) {
    deps.logFault("publish operational events", error);
  } finally {
    if (runs.get(tenantId) === run) runs.delete(tenantId);
  }
}
