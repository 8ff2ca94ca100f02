import type { Place } from "../deliver/in-flight.ts";
import { applyRouting, MAX_MOVED, type ChangeRoutingDeps } from "./change-routing.ts";

export interface QuarantineDeps extends ChangeRoutingDeps {
  /** Per endpoint, when this isolate last could not quarantine it. */
  refusedAt: Map<string, number>;
  logQuarantine(line: QuarantineLine): void;
  logFault(what: string, error: unknown): void;
}

/** What the log says of an endpoint that enters or leaves quarantine. */
export interface QuarantineLine {
  event: "quarantine_entered" | "quarantine_left" | "quarantine_refused";
  tenant_id: string;
  endpoint_id: string;
  /** Requests that were under way in the isolate that found out, and the age of the oldest in ms. */
  in_flight?: number;
  oldest_ms?: number;
  /** How long it lasted. */
  lasted_ms?: number;
}

/** What had too much to move is neither counted nor tried again before: both walk over all that is due. */
const REFUSED_MS = 30_000;
const MAX_REMEMBERED = 1_000;

/**
 * Routes an endpoint that hangs to its lane, which tries it with one request at a time. Of several who find out at once one
 * does it. Never throws: whoever meets the endpoint later tries again.
 */
export async function enterQuarantine(
  deps: QuarantineDeps,
  { tenantId, endpointId }: Place,
  seen: { url: string; inFlight: number; oldestMs: number },
): Promise<void> {
  const { refusedAt } = deps;
  if (Math.abs(deps.now() - (refusedAt.get(endpointId) ?? -Infinity)) < REFUSED_MS) return;
  const line = { tenant_id: tenantId, endpoint_id: endpointId, in_flight: seen.inFlight, oldest_ms: seen.oldestMs };
  try {
    const current = await deps.endpoints.find(tenantId, endpointId);
    const isTried = current?.route === "queue" && current.pausedAt === null && current.disabledAt === null;
    // What hangs may be the URL before this one.
    if (!isTried || current.url !== seen.url) return;
    if ((await deps.countToMove(tenantId, endpointId, "queue", MAX_MOVED + 1)) > MAX_MOVED) {
      remember(refusedAt, endpointId, deps.now());
      deps.logQuarantine({ event: "quarantine_refused", ...line });
    } else if (await applyRouting(deps, tenantId, current, { quarantinedAt: deps.now() })) {
      deps.logQuarantine({ event: "quarantine_entered", ...line });
    }
  } catch (error) {
    remember(refusedAt, endpointId, deps.now());
    deps.logFault("quarantine", error);
  }
}

/**
 * Gives an endpoint back to the queues, unless it is gone, or in another quarantine or none by now. False when it is to be tried
 * again. Never throws.
 */
export async function leaveQuarantine(
  deps: QuarantineDeps,
  { tenantId, endpointId }: Place,
  quarantinedAt: number,
): Promise<boolean> {
  try {
    const current = await deps.endpoints.find(tenantId, endpointId);
    if (current?.quarantinedAt !== quarantinedAt) return true;
    if (!(await applyRouting(deps, tenantId, current, { quarantinedAt: null }))) return false;
    deps.logQuarantine({
      event: "quarantine_left",
      tenant_id: tenantId,
      endpoint_id: endpointId,
      lasted_ms: deps.now() - quarantinedAt,
    });
    return true;
  } catch (error) {
    deps.logFault("leave quarantine", error);
    return false;
  }
}

function remember(refusedAt: Map<string, number>, endpointId: string, now: number): void {
  if (refusedAt.size >= MAX_REMEMBERED) refusedAt.clear();
  refusedAt.set(endpointId, now);
}
