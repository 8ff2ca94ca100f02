import type { NextStep } from "../../core/delivery-end.ts";
import { deliveryId } from "../../core/ids.ts";
import type { AttemptOutcome } from "../../core/outcome.ts";
import type { AttemptReport } from "./report.ts";

/** What the log says of an attempt once it is on record: ids and outcomes. Nothing that anybody sent, and no address. */
export interface AttemptLine {
  tenant_id: string;
  delivery_id: string;
  event_id: string;
  endpoint_id: string;
  attempt_number: number;
  outcome_class: string;
  error_class: string | null;
  status_code: number | null;
  /** Milliseconds; null when the attempt was abandoned. */
  latency_ms: number | null;
  next: "succeeded" | "dead_letter" | "retry";
  final_outcome: string | null;
  /** Of a first attempt: milliseconds from when only a free worker was missing; null where that says nothing of us. */
  lag_ms: number | null;
  /** Milliseconds from the end of this attempt to the next. */
  retry_in_ms: number | null;
}

export function attemptLine(report: AttemptReport, outcome: AttemptOutcome, step: NextStep): AttemptLine {
  const { respondedAt, requestedAt } = report;
  return {
    tenant_id: report.tenantId,
    delivery_id: deliveryId(report),
    event_id: report.eventId,
    endpoint_id: report.endpointId,
    attempt_number: report.attemptNumber,
    outcome_class: step.next === "dead_letter" ? step.outcomeClass : outcome.outcomeClass,
    error_class: outcome.errorClass,
    status_code: outcome.statusCode,
    latency_ms: report.wire.kind === "abandoned" ? null : Math.max(0, respondedAt - requestedAt),
    next: step.next,
    final_outcome: step.next === "succeeded" ? "delivered" : step.next === "dead_letter" ? step.finalOutcome : null,
    lag_ms: lagMs(report),
    retry_in_ms: step.next === "retry" ? Math.max(0, step.nextAttemptAtMs - respondedAt) : null,
  };
}

/** A test send waits for nothing; an abandoned attempt may yet be recorded as what it was. */
function lagMs({ attemptNumber, isLast, wire, requestedAt, scheduledAt }: AttemptReport): number | null {
  const tells = attemptNumber === 1 && !isLast && wire.kind !== "abandoned";
  return tells ? Math.max(0, requestedAt - scheduledAt) : null;
}
