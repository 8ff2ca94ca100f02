import { z } from "zod";
import { encodeCursor, parseCursor } from "../../core/cursor.ts";
import { deliveryId, type DeliveryRef } from "../../core/ids.ts";
import { AppError, invalidField } from "../app-error.ts";
import type { DeliveryCall } from "../deliver/delivery-call.ts";
import { parseInput } from "../parse-input.ts";
import { requireAdmin, type Principal } from "../principal.ts";
import type { Runtime } from "../runtime.ts";
import type { EndpointDeps } from "./deps.ts";
import { getEndpoint } from "./read-endpoint.ts";

type PendingKey =
  | { nextAttemptAt: number; tenantId: string; eventId: string; endpointId: string; replayNo: number }
  | { laneKey: string; lanePosition: number };

export interface RetryPendingDeps extends Pick<EndpointDeps, "endpoints">, Pick<Runtime, "now"> {
  /** Makes due what waits at an endpoint, among a bounded number of rows behind `after`. */
  retryPendingPart(
    tenantId: string,
    endpointId: string,
    isLane: boolean,
    after: PendingKey | null,
    now: number,
  ): Promise<{ mayRetry: boolean; retried: (DeliveryRef & { attemptCount: number })[]; next: PendingKey | null }>;
  ringLater(calls: DeliveryCall[], delayMs: number): void;
  wakeLane(lane: { tenantId: string; endpointId: string; generation: number }): void;
}

export const RetryPendingInput = z.strictObject({ cursor: z.string().nullish() });

export interface RetriedPending {
  /** How many were made due by this request. */
  retried: number;
  /** Null when all have been looked at. */
  nextCursor: string | null;
}

const PARTS_PER_REQUEST = 10;
/** Of an endpoint that was down for long there may be more than should be due at one moment. */
const ENOUGH_RETRIED = 1_000;

/**
 * Makes all due now that waits at an endpoint for its next attempt, or a part of it with a cursor to go on from. Order, cap, rate
 * and quarantine still apply. 409 when it is held.
 */
export async function retryPending(
  deps: RetryPendingDeps,
  principal: Principal,
  id: string,
  body: unknown,
): Promise<RetriedPending> {
  requireAdmin(principal);
  const { tenantId } = principal;
  const { cursor } = parseInput(RetryPendingInput, body);
  const endpoint = await getEndpoint(deps, principal, id);
  const isLane = endpoint.route === "lane";
  const now = deps.now();
  const from = cursor == null ? null : readCursor(cursor);
  let after = from;
  let retried = 0;
  for (let part = 0; part < PARTS_PER_REQUEST && retried < ENOUGH_RETRIED; part++) {
    const done = await deps.retryPendingPart(tenantId, id, isLane, after, now);
    if (!done.mayRetry) {
      throw new AppError(
        "held",
        "The endpoint is paused or disabled, or the tenant suspended, so its deliveries are held. Resume or enable it first.",
      );
    }
    retried += done.retried.length;
    if (!isLane && done.retried.length > 0) {
      const calls = done.retried.map(({ attemptCount, ...ref }) => ({
        tenantId,
        deliveryId: deliveryId(ref),
        attemptNumber: attemptCount + 1,
      }));
      deps.ringLater(calls, 0);
    }
    after = done.next;
    if (after === null) break;
  }
  if (isLane && retried > 0) deps.wakeLane({ tenantId, endpointId: id, generation: endpoint.laneGeneration });
  return { retried, nextCursor: after && writeCursor(retried > 0 ? null : from, after) };
}

/**
 * A walk by queues passes rows of other tenants, whose ids are nobody else's business: a cursor says no more than the time. It never
 * stands still, though all that a request looked at may be of one millisecond, unless some of that was made due: then there is less
 * left of it for the next, which has to see the rest.
 */
function writeCursor(from: PendingKey | null, key: PendingKey): string {
  if ("laneKey" in key) return encodeCursor(["lane", key.lanePosition, key.laneKey]);
  const stands = from !== null && "nextAttemptAt" in from && from.nextAttemptAt === key.nextAttemptAt;
  return encodeCursor(["time", key.nextAttemptAt + (stands ? 1 : 0), ""]);
}

function readCursor(text: string): PendingKey {
  const parsed = parseCursor(text, ["string", "number", "string"]);
  if (!parsed.ok) throw invalidField("cursor", "is not a cursor that this route gave out");
  const [kind, number, laneKey] = parsed.value;
  if (kind === "lane") return { laneKey, lanePosition: number };
  return { nextAttemptAt: number, tenantId: "", eventId: "", endpointId: "", replayNo: 0 };
}
