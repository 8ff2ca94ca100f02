import { z } from "zod";
import { parseDeliveryId, type DeliveryRef } from "../../core/ids.ts";
import type { Endpoint } from "../../core/model.ts";
import { AppError, invalidField, notFound } from "../app-error.ts";
import { parseInput } from "../parse-input.ts";
import { requireAdmin, type Principal } from "../principal.ts";
import { getLane, type ReadLaneDeps } from "./read-lane.ts";

export const SkipHeadInput = z.strictObject({ delivery_id: z.string() });
export type SkipHeadInput = z.infer<typeof SkipHeadInput>;

export interface SkipHeadDeps extends ReadLaneDeps {
  endpoints: { find(tenantId: string, id: string): Promise<Endpoint | null> };
  /** False when the delivery is not a blocked head. */
  skipHead(tenantId: string, ref: DeliveryRef, now: number): Promise<boolean>;
  wakeLane(lane: { tenantId: string; endpointId: string; generation: number }): void;
}

/** Lets a blocked lane go on without its dead head, which stays a dead letter. 409 unless it is a blocked head. */
export async function skipHead(deps: SkipHeadDeps, principal: Principal, endpointId: string, body: unknown) {
  requireAdmin(principal);
  const input = parseInput(SkipHeadInput, body);
  const endpoint = await deps.endpoints.find(principal.tenantId, endpointId);
  if (!endpoint) throw notFound("endpoint");
  const ref = parseDeliveryId(input.delivery_id);
  if (!ref.ok) throw invalidField("delivery_id", "is not a delivery id");
  const isSkipped =
    ref.value.endpointId === endpointId && (await deps.skipHead(principal.tenantId, ref.value, deps.now()));
  if (!isSkipped) throw new AppError("not_blocked", "This delivery is not a blocked head of the endpoint's lane.");
  deps.wakeLane({ tenantId: principal.tenantId, endpointId, generation: endpoint.laneGeneration });
  return getLane(deps, principal, endpointId);
}
