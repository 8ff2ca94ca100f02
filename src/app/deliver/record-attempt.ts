import { decideAfterAttempt, type NextStep } from "../../core/delivery-end.ts";
import { clockMark, mayDisable, mayTellOfFailing, type ClockMark } from "../../core/failing-clock.ts";
import { deliveryId, type TenantDeliveryRef } from "../../core/ids.ts";
import { classifyOutcome, type AttemptOutcome } from "../../core/outcome.ts";
import { comparesAnswers } from "../../core/retry-policy.ts";
import type { Runtime } from "../runtime.ts";
import { attemptLine, type AttemptLine } from "./attempt-line.ts";
import { MAX_RING_DELAY_MS, type DeliveryCall } from "./delivery-call.ts";
import type { AttemptReport } from "./report.ts";

interface Closing extends TenantDeliveryRef {
  attemptNumber: number;
  token: string;
  attempt: {
    respondedAt: number;
    latencyMs: number | null;
    statusCode: number | null;
    outcomeClass: string;
    errorClass: string | null;
    responseBodySha256: string | null;
    responseHeadersJson: string | null;
    partnerRequestId: string | null;
  };
  delivery:
    | { status: "succeeded" | "dead_letter"; finalOutcome: string }
    | { status: "pending"; nextAttemptAt: number; failureCount: number; relayFaultCount: number };
  disable: { url: string; reason: "gone" | "failing" } | null;
  clock: { mark: ClockMark; url: string; requestedAt: number; mayTell: boolean } | null;
}

interface PastAnswer {
  requestedAt: number;
  statusCode: number | null;
  errorClass: string | null;
  responseBodySha256: string | null;
}

export interface RecordAttemptDeps extends Pick<Runtime, "random"> {
  closeAttempts(closings: Closing[]): Promise<void>;
  listRecentAnswers(ref: TenantDeliveryRef, attemptNumber: number, limit: number): Promise<PastAnswer[]>;
  /** Rings at a lane; never fails, never waits for it. */
  wakeLane(lane: { tenantId: string; endpointId: string; generation: number }): void;
  /** Rings for a retry after a delay; never fails, never waits for the queue. */
  ringLater(calls: DeliveryCall[], delayMs: number): void;
  logAttempt(line: AttemptLine): void;
}

/**
 * Puts an attempt on record and moves its delivery: both halves of the close. Throws when the ledger refuses;
 * doing it again is harmless.
 */
export async function recordAttempt(deps: RecordAttemptDeps, report: AttemptReport): Promise<void> {
  const outcome = outcomeOf(report);
  const history = needsHistory(report, outcome)
    ? await deps.listRecentAnswers(report, report.attemptNumber, historyLimit(report))
    : [];
  const abandonedBefore = countWhile(history, (past) => past.errorClass === "abandoned");
  const isAbandoned = outcome.errorClass === "abandoned";
  const step = decideAfterAttempt({
    outcome,
    policy: report.policy,
    failureCount: report.failureCount,
    sameAnswerCount: 1 + countSameAnswers(history, outcome, report.responseBodySha256),
    retryAfterMs: report.retryAfterMs,
    endedAtMs: report.respondedAt,
    scheduledAtMs: report.scheduledAt,
    eventExpiresAtMs: report.expiresAt,
    relayFaultCount: isAbandoned ? abandonedBefore : report.relayFaultCount,
    isLast: report.isLast ?? false,
    relayFaultsSinceMs: isAbandoned ? (history[abandonedBefore - 1]?.requestedAt ?? report.requestedAt) : null,
    random: deps.random(),
  });
  await deps.closeAttempts([toClosing(report, outcome, step)]);
  deps.logAttempt(attemptLine(report, outcome, step));
  if (report.lane) return deps.wakeLane({ ...report, ...report.lane });
  if (step.next !== "retry") return;
  const delayMs = Math.max(0, step.nextAttemptAtMs - report.respondedAt);
  if (delayMs > MAX_RING_DELAY_MS) return;
  const call = { tenantId: report.tenantId, deliveryId: deliveryId(report), attemptNumber: report.attemptNumber + 1 };
  deps.ringLater([call], delayMs);
}

function outcomeOf({ wire, policy }: AttemptReport): AttemptOutcome {
  return wire.kind === "abandoned"
    ? { outcomeClass: "unreachable", errorClass: "abandoned", statusCode: null }
    : classifyOutcome(wire, policy);
}

/** Past answers are read only where they could end the delivery: every other failure costs no read. */
function needsHistory(report: AttemptReport, { errorClass }: AttemptOutcome): boolean {
  if (errorClass === null) return false;
  if (errorClass === "abandoned") return report.relayFaultCount > 0;
  return comparesAnswers(report.policy, errorClass) && report.failureCount + 1 >= report.policy.same_error_limit;
}

/** Room for faults of ours among the answers that are compared. */
function historyLimit(report: AttemptReport): number {
  return report.policy.same_error_limit + report.relayFaultCount + 10;
}

/** How many answers before this one were the same. Attempts that got none because of us do not interrupt the run. */
function countSameAnswers(history: PastAnswer[], outcome: AttemptOutcome, bodySha256: string | null): number {
  const answers = history.filter(({ errorClass }) => errorClass !== "abandoned" && errorClass !== "internal");
  return countWhile(
    answers,
    (past) => past.statusCode === outcome.statusCode && past.responseBodySha256 === bodySha256,
  );
}

function countWhile<T>(items: T[], holds: (item: T) => boolean): number {
  const end = items.findIndex((item) => !holds(item));
  return end === -1 ? items.length : end;
}

function toClosing(report: AttemptReport, outcome: AttemptOutcome, step: NextStep): Closing {
  const { tenantId, eventId, endpointId, replayNo, attemptNumber, token, respondedAt } = report;
  const { endpointUrl: url, requestedAt } = report;
  const mark = clockMark(outcome, { ...report, isTestSend: report.isLast ?? false, isRetried: step.next === "retry" });
  const isGone = step.next === "dead_letter" && step.disableEndpoint;
  const isFailing = mark !== null && mark !== "success" && mayDisable(report.disablesAt ?? null, requestedAt);
  const mayTell = !isGone && mayTellOfFailing(report.failingSince ?? null, requestedAt);
  return {
    tenantId,
    eventId,
    endpointId,
    replayNo,
    attemptNumber,
    token,
    attempt: {
      respondedAt,
      // How long a lease was says nothing of the receiver.
      latencyMs: report.wire.kind === "abandoned" ? null : Math.max(0, respondedAt - report.requestedAt),
      statusCode: outcome.statusCode,
      outcomeClass: step.next === "dead_letter" ? step.outcomeClass : outcome.outcomeClass,
      errorClass: outcome.errorClass,
      responseBodySha256: report.responseBodySha256,
      responseHeadersJson: report.responseHeadersJson,
      partnerRequestId: report.partnerRequestId,
    },
    delivery: toMove(step),
    disable: isGone ? { url, reason: "gone" } : isFailing ? { url, reason: "failing" } : null,
    clock: mark && { mark, url, requestedAt, mayTell },
  };
}

function toMove(step: NextStep): Closing["delivery"] {
  switch (step.next) {
    case "succeeded":
      return { status: "succeeded", finalOutcome: "delivered" };
    case "dead_letter":
      return { status: "dead_letter", finalOutcome: step.finalOutcome };
    case "retry":
      return {
        status: "pending",
        nextAttemptAt: step.nextAttemptAtMs,
        failureCount: step.failureCount,
        relayFaultCount: step.relayFaultCount,
      };
  }
}
