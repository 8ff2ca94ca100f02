import { isHidden, REDACTED } from "../../core/endpoint-headers.ts";
import type { Endpoint } from "../../core/model.ts";
import { formatTime } from "../../core/timestamps.ts";
import { presentTime } from "./time.ts";

export function presentEndpoint(endpoint: Endpoint) {
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
    headers: presentHeaders(endpoint.headers),
    timeout_ms: endpoint.timeoutMs,
    on_exhausted: endpoint.onExhausted,
    paused_at: presentTime(endpoint.pausedAt),
    disabled_at: presentTime(endpoint.disabledAt),
    last_disabled_at: presentTime(endpoint.lastDisabledAt),
    disabled_reason: endpoint.disabledReason,
    created_at: formatTime(endpoint.createdAt),
  };
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
