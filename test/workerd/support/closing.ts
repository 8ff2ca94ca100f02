import { expect } from "vitest";
import type { AttemptReport } from "../../../src/app/deliver/report.ts";
import type { WireResult } from "../../../src/core/outcome.ts";
import { DEFAULT_RETRY_POLICY } from "../../../src/core/retry-policy.ts";
import type { Scene, SceneDelivery } from "./scene.ts";

/** Claims attempt `n` under a token, as a consumer does before it sends. */
export async function claim(
  scene: Scene,
  delivery: SceneDelivery,
  n: number,
  token: string,
  now = Date.now(),
): Promise<void> {
  const endpointRevision = await scene.db
    .prepare("select revision from endpoint where id = ?")
    .bind(delivery.ref.endpointId)
    .first<number>("revision");
  const claims = [
    {
      ...delivery.ref,
      attemptNumber: n,
      token,
      endpointRevision: endpointRevision!,
      signingSecretIds: [],
      workerId: "w",
      relayRegion: null,
      leaseMs: 1_000,
    },
  ];
  expect(await scene.deps.claimDeliveries(claims, now)).toEqual(new Set([token]));
}

export function report(delivery: SceneDelivery, n: number, token: string, wire: AttemptReport["wire"]): AttemptReport {
  const now = Date.now();
  return {
    ...delivery.ref,
    attemptNumber: n,
    token,
    endpointUrl: "https://consumer.example/hook",
    lane: null,
    policy: DEFAULT_RETRY_POLICY,
    failureCount: 0,
    relayFaultCount: 0,
    scheduledAt: now,
    expiresAt: now + 1e9,
    requestedAt: now,
    respondedAt: now + 5,
    wire,
    retryAfterMs: null,
    responseBodySha256: "ab".repeat(32),
    responseHeadersJson: null,
    partnerRequestId: null,
  };
}

export const answered = (status: number): WireResult => ({ kind: "response", status, bodyComplete: true });
