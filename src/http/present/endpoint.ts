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
    headers: {},
    timeout_ms: endpoint.timeoutMs,
    on_exhausted: endpoint.onExhausted,
    paused_at: presentTime(endpoint.pausedAt),
    disabled_at: presentTime(endpoint.disabledAt),
    last_disabled_at: presentTime(endpoint.lastDisabledAt),
    disabled_reason: endpoint.disabledReason,
    created_at: formatTime(endpoint.createdAt),
  };
}

function stateOf({ disabledAt, pausedAt }: Endpoint): "active" | "paused" | "disabled" {
  if (disabledAt !== null) return "disabled";
  return pausedAt === null ? "active" : "paused";
}
