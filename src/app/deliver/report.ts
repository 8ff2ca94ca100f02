import type { TenantDeliveryRef } from "../../core/ids.ts";
import type { WireResult } from "../../core/outcome.ts";
import type { RetryPolicy } from "../../core/retry-policy.ts";

/** What of a claimed delivery decides what follows its attempt. Times in ms since 1970 UTC. */
export interface ClaimedState {
  policy: RetryPolicy;
  failureCount: number;
  relayFaultCount: number;
  scheduledAt: number;
  expiresAt: number;
}

/**
 * All there is to know of an attempt that was made, and of the claim it was made under: enough to put it on record later,
 * by anybody, without reading the ledger. Plain JSON, since it may wait in a queue.
 */
export interface AttemptReport extends TenantDeliveryRef, ClaimedState {
  attemptNumber: number;
  token: string;
  /** What the request went to. */
  endpointUrl: string;
  /** From when on a failure may disable the endpoint, as the claim had it; null or absent when nothing did. */
  disablesAt?: number | null;
  /** Since when it has had nothing but failures, as the claim had it. */
  failingSince?: number | null;
  /** No other attempt is made, whatever came of this one. Absent in reports that are older than test sends. */
  isLast?: boolean;
  /** The lane that waits for this; null where queues deliver. */
  lane: { generation: number } | null;
  requestedAt: number;
  respondedAt: number;
  wire: WireResult | { kind: "abandoned" };
  retryAfterMs: number | null;
  /** Hex, of what was read of the answer's body. */
  responseBodySha256: string | null;
  responseHeadersJson: string | null;
  partnerRequestId: string | null;
}

/** Recovery of a lease waits for reports on their way to the ledger, but not for ever. */
export const MAX_REPORT_WAIT_MS = 10 * 60_000;
