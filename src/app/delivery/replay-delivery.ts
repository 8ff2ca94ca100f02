import { z } from "zod";
import { chooseVersion, type VersionChoice } from "../../core/choose-version.ts";
import { versionsOf } from "../../core/event-variants.ts";
import { deliveryId, type DeliveryRef } from "../../core/ids.ts";
import type { Delivery, Endpoint, Event } from "../../core/model.ts";
import { mergeRetryPolicy, RetryPolicyInput, type RetryPolicy } from "../../core/retry-policy.ts";
import { AppError } from "../app-error.ts";
import type { DeliveryCall } from "../deliver/delivery-call.ts";
import { parseInput } from "../parse-input.ts";
import { requireAdmin, type Principal } from "../principal.ts";
import { findDelivery, type ReadDeliveryDeps } from "./read-delivery.ts";

export const ReplayDeliveryInput = z.strictObject({ retry_policy: RetryPolicyInput.nullish() });
export type ReplayDeliveryInput = z.infer<typeof ReplayDeliveryInput>;

export interface ReplayDeliveryDeps extends Pick<ReadDeliveryDeps, "findDelivery" | "now"> {
  findEvent(tenantId: string, id: string, now: number): Promise<Event | null>;
  endpoints: { find(tenantId: string, id: string): Promise<Endpoint | null> };
  /** The number of the new replay; null when the delivery or its endpoint do not allow one. */
  insertReplay(tenantId: string, ref: DeliveryRef, policy: RetryPolicy | null, now: number): Promise<number | null>;
  findReplayPin(
    tenantId: string,
    delivery: { subscriptionId: string; eventId: string },
  ): Promise<{ pin: number | null; retired: number[] }>;
  ringLater(calls: DeliveryCall[], delayMs: number): void;
}

/**
 * Delivers a terminal delivery's event to its endpoint again: a new delivery with the same `webhook-id`, linked both ways,
 * under the endpoint's present settings and the policy given or present.
 */
export async function replayDelivery(
  deps: ReplayDeliveryDeps,
  principal: Principal,
  id: string,
  body: unknown,
): Promise<Delivery> {
  requireAdmin(principal);
  const input = parseInput(ReplayDeliveryInput, body);
  const { tenantId } = principal;
  const original = await findDelivery(deps, principal, id);
  const endpoint = await deps.endpoints.find(tenantId, original.endpointId);
  const policy = input.retry_policy && endpoint ? mergeRetryPolicy(endpoint.retryPolicy, input.retry_policy) : null;

  const replayNo = await deps.insertReplay(tenantId, original, policy, deps.now());
  if (replayNo === null) throw await refusal(deps, principal, id);
  const replay = { eventId: original.eventId, endpointId: original.endpointId, replayNo };
  deps.ringLater([{ tenantId, deliveryId: deliveryId(replay), attemptNumber: 1 }], 0);
  return findDelivery(deps, principal, deliveryId(replay));
}

async function chooseReplayed(
  deps: ReplayDeliveryDeps,
  tenantId: string,
  delivery: Delivery,
  event: Event,
): Promise<VersionChoice> {
  const { pin, retired } = await deps.findReplayPin(tenantId, delivery);
  return chooseVersion(pin, { versions: versionsOf(event), isRetired: (version) => retired.includes(version) });
}

function versionRefusal({ schemaVersion, versionFault }: VersionChoice, delivery: Delivery, event: Event): AppError {
  const asked = `Subscription ${delivery.subscriptionId} asks for version ${schemaVersion} of ${event.type}`;
  return versionFault === "version_retired"
    ? new AppError("version_retired", `${asked}, which is retired.`)
    : new AppError("version_not_published", `${asked}, which the event does not carry.`);
}

async function refusal(deps: ReplayDeliveryDeps, principal: Principal, id: string): Promise<AppError> {
  const delivery = await findDelivery(deps, principal, id);
  if (delivery.terminalAt === null) {
    return new AppError("not_terminal", `The delivery is ${delivery.status}; only one that has ended can be replayed.`);
  }
  const event = await deps.findEvent(principal.tenantId, delivery.eventId, deps.now());
  if (event !== null && event.payloadErasedAt !== null) {
    return new AppError("payload_erased", "The payload of this delivery's event is erased; there is nothing to send.");
  }
  const endpoint = await deps.endpoints.find(principal.tenantId, delivery.endpointId);
  if (!endpoint) return new AppError("endpoint_deleted", "The endpoint of this delivery is deleted.");
  if (event !== null && endpoint.disabledAt === null) {
    const choice = await chooseReplayed(deps, principal.tenantId, delivery, event);
    if (choice.versionFault !== null) return versionRefusal(choice, delivery, event);
  }
  return new AppError("endpoint_disabled", "The endpoint of this delivery is disabled. Enable it first.");
}
