import type { Endpoint } from "../../core/model.ts";
import { formatTime } from "../../core/timestamps.ts";
import { presentTime } from "./time.ts";

/** What is not built yet shows the one value it can have. */
export function presentEndpoint(endpoint: Endpoint) {
  return {
    id: endpoint.id,
    url: endpoint.url,
    name: endpoint.name,
    revision: endpoint.revision,
    state: endpoint.disabledAt === null ? "active" : "disabled",
    ordering_mode: endpoint.orderingMode,
    concurrency_cap: null,
    rate_limit_per_second: null,
    max_head_hold_seconds: null,
    retry_policy: endpoint.retryPolicy,
    payload_format: endpoint.payloadFormat,
    headers: {},
    timeout_ms: endpoint.timeoutMs,
    on_exhausted: "advance",
    paused_at: null,
    disabled_at: presentTime(endpoint.disabledAt),
    last_disabled_at: presentTime(endpoint.lastDisabledAt),
    disabled_reason: endpoint.disabledReason,
    created_at: formatTime(endpoint.createdAt),
  };
}
