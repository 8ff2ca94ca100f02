import type { AttemptOutcome, OutcomeClass } from "./outcome.ts";
import { comparesAnswers, deadlineMs, retryDelayMs, type RetryPolicy } from "./retry-policy.ts";

const RELAY_FAULT_DELAYS_MS = [1_000, 5_000, 15_000, 60_000];
const ABANDONED_LIMIT = 5;
const ABANDONED_SPAN_MS = 10 * 60_000;
const LAST_ATTEMPT_RESERVE_MS = 60_000;

/** A closed attempt and what its delivery's row said before it. Times are ms since the epoch. */
export type ClosedAttempt = {
  outcome: AttemptOutcome;
  policy: RetryPolicy;
  /** Counted failures before this attempt. */
  failureCount: number;
  /** How many times running, this one included, the same status and body hash came. */
  sameAnswerCount: number;
  /** What `Retry-After` asked for, null when it said nothing. */
  retryAfterMs: number | null;
  endedAtMs: number;
  /** Where the age clock starts. */
  scheduledAtMs: number;
  eventExpiresAtMs: number;
  /** Faults of the relay in a row before this attempt. */
  relayFaultCount: number;
  /** Start of the first of the present run of `abandoned`, null when there is none. */
  relayFaultsSinceMs: number | null;
  /** A test send: there is no other attempt, and nothing else follows from it. */
  isLast: boolean;
  /** In [0, 1). */
  random: number;
};

export type NextStep =
  | { next: "succeeded" }
  | {
      next: "dead_letter";
      finalOutcome: "rejected" | "exhausted" | "same_error" | "gone" | "abandoned";
      /** The class to record on the attempt: a same-error end turns `transient` into `rejected`. */
      outcomeClass: OutcomeClass;
      disableEndpoint: boolean;
    }
  | { next: "retry"; nextAttemptAtMs: number; failureCount: number; relayFaultCount: number };

/**
 * What follows a closed attempt. `nextAttemptAtMs` lies between the attempt's end and the
 * delivery's deadline; where it *is* the deadline no attempt is left: the claim finds the delivery
 * expired and ends it so.
 */
export function decideAfterAttempt(attempt: ClosedAttempt): NextStep {
  const { outcome } = attempt;
  if (outcome.outcomeClass === "success") return { next: "succeeded" };
  if (attempt.isLast) return afterOnlyAttempt(outcome);
  if (outcome.outcomeClass === "rejected") {
    const gone = outcome.statusCode === 410;
    return { ...deadLetter(gone ? "gone" : "rejected", "rejected"), disableEndpoint: gone };
  }
  if (outcome.errorClass === "internal") {
    return retryUncounted(attempt, relayFaultDelayMs(attempt.relayFaultCount + 1));
  }
  if (outcome.errorClass === "abandoned") return afterAbandoned(attempt);
  return afterCountedFailure(attempt, outcome.outcomeClass);
}

/** A test says what an endpoint answers; it never disables it. */
function afterOnlyAttempt({ outcomeClass, errorClass, statusCode }: AttemptOutcome): NextStep {
  if (outcomeClass === "rejected") return deadLetter(statusCode === 410 ? "gone" : "rejected", outcomeClass);
  const isOurs = errorClass === "internal" || errorClass === "abandoned";
  return deadLetter(isOurs ? "abandoned" : "exhausted", outcomeClass);
}

/**
 * Milliseconds to wait after a fault of the relay, before or during the send: 1, 5, 15, then 60 s.
 * @param faultCount the fault's number in its run, from 1
 */
export function relayFaultDelayMs(faultCount: number): number {
  const last = RELAY_FAULT_DELAYS_MS.length - 1;
  return RELAY_FAULT_DELAYS_MS[Math.min(Math.max(faultCount - 1, 0), last)] ?? 0;
}

/**
 * The wait after a fault before the send, told by how long the delivery has been due: a fault that leaves no trace is not
 * counted, and waiting for it costs no row.
 */
export function relayFaultDelayAfterMs(overdueMs: number): number {
  let elapsedMs = 0;
  let faultCount = 1;
  for (const delayMs of RELAY_FAULT_DELAYS_MS) {
    elapsedMs += delayMs;
    if (overdueMs >= elapsedMs) faultCount++;
  }
  return relayFaultDelayMs(faultCount);
}

function afterCountedFailure(attempt: ClosedAttempt, outcomeClass: OutcomeClass): NextStep {
  const { policy, outcome } = attempt;
  const failureCount = attempt.failureCount + 1;
  const sameError = outcome.errorClass !== null && comparesAnswers(policy, outcome.errorClass);
  if (sameError && attempt.sameAnswerCount >= policy.same_error_limit) {
    return deadLetter("same_error", "rejected");
  }
  if (failureCount >= policy.max_attempts) return deadLetter("exhausted", outcomeClass);

  // Only a transient answer may ask for time: an unreachable one is incomplete, or an edge's own.
  const retryAfterMs = outcomeClass === "transient" ? (attempt.retryAfterMs ?? 0) : 0;
  const delayMs = retryDelayMs(policy, failureCount, attempt.random);
  const waitMs = Math.max(delayMs, capRetryAfterMs(retryAfterMs, windowLeftMs(attempt)));
  return retryIn(attempt, waitMs, failureCount, 0);
}

/** However long the receiver asks for, one last attempt must still fall inside the window. */
function capRetryAfterMs(retryAfterMs: number, leftMs: number): number {
  const reserveMs = Math.min(LAST_ATTEMPT_RESERVE_MS, Math.ceil(leftMs / 10));
  return Math.min(retryAfterMs, leftMs - reserveMs);
}

/** A crashed worker says nothing about the endpoint, unless its requests are what crashes workers. */
function afterAbandoned(attempt: ClosedAttempt): NextStep {
  const sinceMs = attempt.relayFaultsSinceMs ?? attempt.endedAtMs;
  const lasted = attempt.endedAtMs - sinceMs >= ABANDONED_SPAN_MS;
  if (lasted && attempt.relayFaultCount + 1 >= ABANDONED_LIMIT) {
    return deadLetter("abandoned", "unreachable");
  }
  // The lease that ran out was the wait.
  return retryUncounted(attempt, 0);
}

function retryUncounted(attempt: ClosedAttempt, waitMs: number): NextStep {
  return retryIn(attempt, waitMs, attempt.failureCount, attempt.relayFaultCount + 1);
}

function retryIn(attempt: ClosedAttempt, waitMs: number, failureCount: number, relayFaultCount: number): NextStep {
  const nextAttemptAtMs = attempt.endedAtMs + Math.min(waitMs, windowLeftMs(attempt));
  return { next: "retry", nextAttemptAtMs, failureCount, relayFaultCount };
}

function windowLeftMs(attempt: ClosedAttempt): number {
  const { policy, scheduledAtMs, eventExpiresAtMs, endedAtMs } = attempt;
  return Math.max(0, deadlineMs(policy, scheduledAtMs, eventExpiresAtMs) - endedAtMs);
}

type DeadLetter = Extract<NextStep, { next: "dead_letter" }>;

function deadLetter(finalOutcome: DeadLetter["finalOutcome"], outcomeClass: OutcomeClass): DeadLetter {
  return { next: "dead_letter", finalOutcome, outcomeClass, disableEndpoint: false };
}
