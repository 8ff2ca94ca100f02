import { z } from "zod";
import { isHidden, REDACTED } from "../../core/endpoint-headers.ts";
import type { Endpoint } from "../../core/model.ts";
import { PAYLOAD_FORMATS } from "../../core/outbound.ts";
import { formatTime } from "../../core/timestamps.ts";
import { presentTime } from "./time.ts";
import { ANSWERS } from "../openapi/registries.ts";
import { id, known, time, wholePolicy } from "./fields.ts";

export const EndpointAnswer = z
  .object({
    id: id("ep"),
    url: z.string(),
    name: z.string().nullable(),
    revision: z.int(),
    state: z.enum(["active", "paused", "disabled"]),
    ordering_mode: z.enum(["unordered", "strict", "keyed"]),
    concurrency_cap: z.int().nullable(),
    rate_limit_per_second: z.int().nullable(),
    max_head_hold_seconds: z.int().nullable(),
    retry_policy: wholePolicy,
    payload_format: z.enum(PAYLOAD_FORMATS),
    source_signatures: z.boolean(),
    headers: z.record(z.string(), z.string()),
    timeout_ms: z.int(),
    on_exhausted: z.enum(["advance", "block"]),
    paused_at: time.nullable(),
    disabled_at: time.nullable(),
    last_disabled_at: time.nullable(),
    disabled_reason: known(["operator", "gone", "failing"]).nullable(),
    failing_since: time.nullable(),
    disable_after_failing_seconds: z.int().nullable(),
    quarantined_at: time.nullable(),
    created_at: time,
  })
  .register(ANSWERS, { id: "Endpoint" });
type EndpointAnswer = z.infer<typeof EndpointAnswer>;

export const CreatedEndpointAnswer = EndpointAnswer.extend({ secret: z.string() }).register(ANSWERS, {
  id: "CreatedEndpoint",
});
type CreatedEndpointAnswer = z.infer<typeof CreatedEndpointAnswer>;

export const RetriedPendingAnswer = z
  .object({ retried: z.int(), next_cursor: z.string().nullable() })
  .register(ANSWERS, { id: "RetriedPending" });
export type RetriedPendingAnswer = z.infer<typeof RetriedPendingAnswer>;

export function presentEndpoint(endpoint: Endpoint): EndpointAnswer {
  return {
    id: endpoint.id,
    url: endpoint.url,
    name: endpoint.name,
    revision: endpoint.revision,
    state: stateOf(endpoint),
    ordering_mode: endpoint.orderingMode,
    concurrency_cap: endpoint.concurrencyCap,
    rate_limit_per_second: endpoint.rateLimitPerSecond,
    max_head_hold_seconds: endpoint.maxHeadHoldSeconds,
    retry_policy: endpoint.retryPolicy,
    payload_format: endpoint.payloadFormat,
    source_signatures: endpoint.sourceSignatures,
    headers: presentHeaders(endpoint.headers),
    timeout_ms: endpoint.timeoutMs,
    on_exhausted: endpoint.onExhausted,
    paused_at: presentTime(endpoint.pausedAt),
    disabled_at: presentTime(endpoint.disabledAt),
    last_disabled_at: presentTime(endpoint.lastDisabledAt),
    disabled_reason: endpoint.disabledReason,
    failing_since: presentTime(endpoint.failingSince),
    disable_after_failing_seconds: endpoint.disableAfterFailingSeconds,
    quarantined_at: presentTime(endpoint.quarantinedAt),
    created_at: formatTime(endpoint.createdAt),
  };
}

/** With the text of its signing secret, this once. */
export function presentCreatedEndpoint(created: { endpoint: Endpoint; secret: string }): CreatedEndpointAnswer {
  return { ...presentEndpoint(created.endpoint), secret: created.secret };
}

/** Every header by name; what lets in is not shown. */
function presentHeaders(headers: Endpoint["headers"]): Record<string, string> {
  return Object.fromEntries(
    headers.map((header) => [header.name, "value" in header && !isHidden(header) ? header.value : REDACTED]),
  );
}

function stateOf({ disabledAt, pausedAt }: Endpoint): "active" | "paused" | "disabled" {
  if (disabledAt !== null) return "disabled";
  return pausedAt === null ? "active" : "paused";
}
