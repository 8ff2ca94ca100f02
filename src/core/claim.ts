import type { FinalOutcome } from "./outcome.ts";
import type { DeliveryStatus } from "./model.ts";
import { deadlineMs, type RetryPolicy } from "./retry-policy.ts";

/** What the ledger says of a delivery somebody was asked to attempt. Times in ms since 1970 UTC. */
export interface DeliveryState {
  status: DeliveryStatus;
  attemptCount: number;
  nextAttemptAt: number | null;
  /** Where its age begins. */
  scheduledAt: number;
  expiresAt: number;
  policy: RetryPolicy;
  /** In the hold, or in a lane. */
  held: boolean;
  endpointRoute: "queue" | "lane";
  endpointPaused: boolean;
  endpointDisabled: boolean;
  endpointDeleted: boolean;
}

/**
 * `drop`: nothing to do, the ledger knows. `wake`: a lane has it. `wait`: due later. `hold`: due, but its endpoint is paused
 * or disabled. `end`: no attempt will be made any more. `attempt`: prepare and claim.
 */
export type ClaimDecision =
  | { decision: "drop" }
  | { decision: "wake" }
  | { decision: "wait"; delayMs: number }
  | { decision: "hold"; holdUntil: number }
  | { decision: "end"; status: "failed" | "expired"; finalOutcome: FinalOutcome }
  | { decision: "attempt" };

/**
 * What to do with a delivery when its doorbell rings for attempt `attemptNumber`. A message may be doubled, late or early:
 * only the row decides, and the claim proves it again.
 */
export function decideClaim(state: DeliveryState, attemptNumber: number, now: number): ClaimDecision {
  if (state.status !== "pending" || state.attemptCount !== attemptNumber - 1) return { decision: "drop" };
  if (state.held && state.endpointRoute === "lane") return { decision: "wake" };
  if (state.endpointDeleted) return { decision: "end", status: "failed", finalOutcome: "endpoint_deleted" };
  // A pause stops the clock, a disabled endpoint does not; where the event ends, every hold ends.
  const isStopped = state.endpointPaused && !state.endpointDisabled;
  const deadline = isStopped ? state.expiresAt : deadlineMs(state.policy, state.scheduledAt, state.expiresAt);
  if (now >= deadline) return { decision: "end", status: "expired", finalOutcome: "expired" };
  if (state.endpointPaused || state.endpointDisabled) return { decision: "hold", holdUntil: deadline };
  if (state.held || state.nextAttemptAt === null) return { decision: "drop" };
  if (state.nextAttemptAt > now) return { decision: "wait", delayMs: state.nextAttemptAt - now };
  return { decision: "attempt" };
}
