import { judgeHealth, type Health, type HealthAttempt, type HealthEndpoint } from "../../core/health.ts";
import { notFound } from "../app-error.ts";
import { requireReader, type Principal } from "../principal.ts";
import type { Runtime } from "../runtime.ts";

export interface ReadHealthDeps extends Pick<Runtime, "now"> {
  /** Attempts newest first. Null when there is no such endpoint. */
  readHealth(
    tenantId: string,
    endpointId: string,
    now: number,
  ): Promise<{ endpoint: HealthEndpoint; attempts: HealthAttempt[] } | null>;
}

/** How an endpoint does, by its recent attempts as they are on record at this moment. */
export async function getHealth(deps: ReadHealthDeps, principal: Principal, endpointId: string): Promise<Health> {
  requireReader(principal);
  const now = deps.now();
  const found = await deps.readHealth(principal.tenantId, endpointId, now);
  if (!found) throw notFound("endpoint");
  return judgeHealth(found.attempts, found.endpoint, now);
}
