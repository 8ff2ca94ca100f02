import { cloudEventHeaders } from "../../core/cloud-events.ts";
import { eventHeaders, signatureHeaders, sourceSignatureHeaders } from "../../core/outbound.ts";
import { repeatUnder } from "../../core/header-prefix.ts";
import { webhookId } from "../../core/ids.ts";
import { classifyOutcome, type WireResult } from "../../core/outcome.ts";
import { keepResponseHeaders, partnerRequestId } from "../../core/response-headers.ts";
import { parseRetryAfter } from "../../core/retry-after.ts";
import { signWebhook } from "../../core/signature.ts";
import { signAsSource } from "../../core/source-signature.ts";
import { isTestSend } from "../../core/test-event.ts";
import type { Runtime } from "../runtime.ts";
import { keepReport, type KeepReportDeps } from "./keep-report.ts";
import type { AttemptReport } from "./report.ts";
import type { LoadedDelivery, Prepared } from "./prepare.ts";

interface OutboundRequest {
  url: string;
  headers: [string, string][];
  body: Uint8Array;
  timeoutMs: number;
}

interface OutboundAnswer {
  wire: WireResult;
  bodySha256: string | null;
  headers: [string, string][];
}

export interface SendDeps extends KeepReportDeps, Pick<Runtime, "now"> {
  /** Makes the request; throws only for faults of the relay itself. */
  send(request: OutboundRequest): Promise<OutboundAnswer>;
}

export interface ClaimedAttempt {
  delivery: LoadedDelivery;
  prepared: Prepared;
  attemptNumber: number;
  token: string;
  startedAt: number;
}

/** Sends a claimed attempt and puts what came of it on record. Never throws. */
export async function sendAttempt(deps: SendDeps, attempt: ClaimedAttempt): Promise<void> {
  await keepReport(deps, await makeRequest(deps, attempt));
}

/** Makes the request of a claimed attempt. Never throws: whatever happens is in the report. */
export async function makeRequest(deps: SendDeps, attempt: ClaimedAttempt): Promise<AttemptReport> {
  const { delivery, prepared, startedAt } = attempt;
  let answer: OutboundAnswer;
  try {
    answer = prepared.isUnresolvable
      ? { wire: { kind: "thrown", message: "DNS lookup failed" }, bodySha256: null, headers: [] }
      : await deps.send({
          url: prepared.url,
          body: prepared.body,
          timeoutMs: delivery.endpoint.timeoutMs,
          headers: await outboundHeaders(attempt),
        });
  } catch (error) {
    deps.logFault("send", error);
    answer = { wire: { kind: "internal" }, bodySha256: null, headers: [] };
  }
  const respondedAt = deps.now();
  const answered = new Headers(answer.headers);
  const isSuccess = classifyOutcome(answer.wire, delivery.policy).outcomeClass === "success";
  return {
    tenantId: delivery.tenantId,
    eventId: delivery.eventId,
    endpointId: delivery.endpointId,
    replayNo: delivery.replayNo,
    attemptNumber: attempt.attemptNumber,
    token: attempt.token,
    endpointUrl: delivery.endpoint.url,
    disablesAt: delivery.endpoint.disablesAt,
    failingSince: delivery.endpoint.failingSince,
    isLast: isTestSend(delivery.event.type, delivery.replayNo),
    lane: delivery.laneKey === null ? null : { generation: delivery.endpoint.laneGeneration },
    policy: delivery.policy,
    failureCount: delivery.failureCount,
    relayFaultCount: delivery.relayFaultCount,
    scheduledAt: Math.max(delivery.scheduledAt ?? startedAt, delivery.endpoint.resumedAt ?? 0),
    expiresAt: delivery.expiresAt,
    requestedAt: startedAt,
    respondedAt,
    wire: answer.wire,
    retryAfterMs: parseRetryAfter(answered.get("retry-after"), respondedAt),
    responseBodySha256: answer.bodySha256,
    responseHeadersJson: answer.headers.length > 0 ? keepResponseHeaders(answer.headers, isSuccess) : null,
    partnerRequestId: partnerRequestId(answered.get("x-request-id")),
  };
}

async function outboundHeaders(attempt: ClaimedAttempt): Promise<[string, string][]> {
  const { delivery, prepared, attemptNumber, startedAt } = attempt;
  const timestampSeconds = Math.floor(startedAt / 1000);
  const message = { id: webhookId(delivery), timestampSeconds, body: prepared.body };
  const keys = prepared.secrets.map(({ key }) => key);
  const signatures = [await signWebhook(keys, message), ...(await signAsSource(prepared.sourceKeys, message))];
  const own = [
    ...signatureHeaders(delivery, timestampSeconds, signatures.join(" ")),
    ...eventHeaders(delivery.event, delivery, attemptNumber, startedAt),
    ...sourceSignatureHeaders(delivery.sourceSignature?.sourceId ?? null),
  ];
  return [
    ["Content-Type", prepared.contentType],
    ...(prepared.contentEncoding === null ? [] : [["Content-Encoding", prepared.contentEncoding] as [string, string]]),
    ...own,
    ...repeatUnder(delivery.endpoint.headerPrefix, own),
    ...(delivery.endpoint.payloadFormat === "cloudevents" ? cloudEventHeaders(delivery.event) : []),
    ...prepared.headers,
  ];
}
