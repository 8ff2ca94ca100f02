import type { AttemptOutcome } from "./outcome.ts";

/** An endpoint with nothing but failures for this long is disabled, unless it says otherwise. */
export const DEFAULT_DISABLE_AFTER_FAILING_SECONDS = 432_000;
export const MIN_DISABLE_AFTER_FAILING_SECONDS = 3_600;
export const MAX_DISABLE_AFTER_FAILING_SECONDS = 31_536_000;

/** While it fails, that it still does is written down this often: twice a day is enough to tell failing from silence. */
export const FAILURE_NOTED_EVERY_MS = 12 * 3_600_000;
/**
 * So long after the failure that was noted last, the next begins anew: two lone failures are no time of failing. Longer than the
 * longest wait of the default policy, or an endpoint with one event at a time would never fail for long.
 */
export const QUIET_ENDS_FAILING_MS = 48 * 3_600_000;

/**
 * What an attempt says of its endpoint. A `first_failure` is its delivery's first, and is retried: it starts no clock, so that
 * those which a retry mends cost nothing, and counts like others while the clock runs,
 * and where retries have no turn.
 */
export type ClockMark = "success" | "failure" | "first_failure";

/** Null when it says nothing: a fault of ours, or a test, which changes nothing. `failureCount` is of those before it. */
export function clockMark(
  { outcomeClass, errorClass }: AttemptOutcome,
  { isTestSend, isRetried, failureCount }: { isTestSend: boolean; isRetried: boolean; failureCount: number },
): ClockMark | null {
  if (isTestSend || errorClass === "internal" || errorClass === "abandoned") return null;
  if (outcomeClass === "success") return "success";
  return isRetried && failureCount === 0 ? "first_failure" : "failure";
}

/** From when on a failure disables the endpoint. Null while it does not fail, or is never to be disabled for it. */
export function disablesAt(failingSince: number | null, disableAfterFailingSeconds: number | null): number | null {
  if (failingSince === null || disableAfterFailingSeconds === null) return null;
  return failingSince + disableAfterFailingSeconds * 1_000;
}

/** Whether a failure may disable its endpoint, by what was known when its request began; the ledger knows the present. */
export function mayDisable(disablesAtMs: number | null, requestedAtMs: number): boolean {
  return disablesAtMs !== null && disablesAtMs <= requestedAtMs;
}

/** An endpoint with nothing but failures for this long is told of, once for each such time. */
export const FAILING_TOLD_AFTER_MS = 3_600_000;

/** Whether a failure may be told of as the endpoint's, by what was known when its request began; the ledger knows the present. */
export function mayTellOfFailing(failingSinceMs: number | null, requestedAtMs: number): boolean {
  return failingSinceMs !== null && failingSinceMs + FAILING_TOLD_AFTER_MS <= requestedAtMs;
}
