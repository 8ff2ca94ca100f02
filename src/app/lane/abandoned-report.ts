import type { LoadedDelivery } from "../deliver/prepare.ts";
import type { AttemptReport } from "../deliver/report.ts";

/** Of a claimed delivery that nobody answers for any more. */
export function abandonedReport(head: LoadedDelivery, now: number): AttemptReport {
  return {
    ...head,
    attemptNumber: head.attemptCount,
    token: head.token!,
    endpointUrl: head.endpoint.url,
    lane: null,
    scheduledAt: head.scheduledAt ?? now,
    requestedAt: head.lastAttemptAt ?? now,
    respondedAt: now,
    wire: { kind: "abandoned" },
    retryAfterMs: null,
    responseBodySha256: null,
    responseHeadersJson: null,
    partnerRequestId: null,
  };
}
