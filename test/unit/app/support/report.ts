import type { AttemptReport } from "../../../../src/app/deliver/report.ts";
import { DEFAULT_RETRY_POLICY } from "../../../../src/core/retry-policy.ts";

export const T0 = 1_790_000_000_000;
const DAY_MS = 86_400_000;

/** No jitter, so that delays are exact. */
export const POLICY = { ...DEFAULT_RETRY_POLICY, jitter: 0 };

/** Of a first attempt that took 250 ms and was answered 500. */
export function attemptReport(over: Partial<AttemptReport> = {}): AttemptReport {
  return {
    tenantId: "ten_1",
    eventId: "evt_01k7xq3v5h8m2n4p6r8t0v2w4y",
    endpointId: "ep_0123456789abcdef",
    replayNo: 0,
    attemptNumber: 1,
    token: "token-1",
    endpointUrl: "https://consumer.example/hook",
    lane: null,
    policy: POLICY,
    failureCount: 0,
    relayFaultCount: 0,
    scheduledAt: T0,
    expiresAt: T0 + 30 * DAY_MS,
    requestedAt: T0 + 1_000,
    respondedAt: T0 + 1_250,
    wire: { kind: "response", status: 500, bodyComplete: true },
    retryAfterMs: null,
    responseBodySha256: "aa",
    responseHeadersJson: "{}",
    partnerRequestId: "partner-1",
    ...over,
  };
}
