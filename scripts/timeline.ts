/** What of a delivery and its attempts, as `GET /v1/deliveries/{id}` answers them, makes a timeline. */
export interface TimelineDelivery {
  status: string;
  final_outcome: string | null;
  created_at: string;
  attempts: {
    attempt_number: number;
    requested_at: string;
    responded_at: string | null;
    latency_ms: number | null;
    status_code: number | null;
    outcome_class: string | null;
    error_class: string | null;
  }[];
}

const WIDTH = 86;

/** A headline and one line an attempt: when it began, what came back, how long that took, what was done next. */
export function formatTimeline(title: string, delivery: TimelineDelivery): string[] {
  const { attempts, created_at: createdAt, status, final_outcome: finalOutcome } = delivery;
  const count = attempts.length === 1 ? "1 attempt" : `${attempts.length} attempts`;
  const summary = `${status} after ${count}`;
  const lines = attempts.map((attempt, i) => {
    const next = attempts[i + 1];
    const errorClass = attempt.error_class === null ? "" : ` (${attempt.error_class})`;
    return [
      `    +${secondsBetween(createdAt, attempt.requested_at).padStart(6)}`,
      `#${attempt.attempt_number}`,
      attempt.status_code === null ? "---" : String(attempt.status_code),
      `${attempt.outcome_class ?? "in flight"}${errorClass}`.padEnd(23),
      `${attempt.latency_ms ?? "?"} ms`.padStart(8),
      next ? `again after ${secondsBetween(attempt.responded_at!, next.requested_at)}` : (finalOutcome ?? status),
    ].join("   ");
  });
  return [`  ${title.padEnd(WIDTH - 2 - summary.length)}${summary}`, ...lines];
}

function secondsBetween(from: string, to: string): string {
  return `${((Date.parse(to) - Date.parse(from)) / 1000).toFixed(2)} s`;
}
