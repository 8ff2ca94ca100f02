import { z } from "zod";
import { DEFAULT_DISABLE_AFTER_FAILING_SECONDS } from "../../core/failing-clock.ts";
import { createId } from "../../core/ids.ts";
import { routeOf } from "../../core/lane.ts";
import type { Endpoint } from "../../core/model.ts";
import { DEFAULT_RETRY_POLICY, mergeRetryPolicy } from "../../core/retry-policy.ts";
import { quotaExceeded } from "../app-error.ts";
import { parseInput } from "../parse-input.ts";
import { requireAdmin, type Principal } from "../principal.ts";
import type { EndpointDeps } from "./deps.ts";
import { acceptUrl, ENDPOINT_FIELDS } from "./endpoint-fields.ts";
import { changeHeaders, toHeaderChange } from "./header-input.ts";
import { createSecret } from "./new-secret.ts";

const DEFAULT_TIMEOUT_MS = 15_000;

export const CreateEndpointInput = z.strictObject({ ...ENDPOINT_FIELDS, url: z.string() });
export type CreateEndpointInput = z.infer<typeof CreateEndpointInput>;

/** `secret` (`whsec_…`) signs what the endpoint gets. 409 when the tenant's quota is full. */
export async function createEndpoint(
  deps: EndpointDeps,
  principal: Principal,
  body: unknown,
): Promise<{ endpoint: Endpoint; secret: string }> {
  requireAdmin(principal);
  const input = parseInput(CreateEndpointInput, body);
  const url = acceptUrl(input.url, deps.destinationRules);

  const now = deps.now();
  const id = createId("ep", deps.randomBytes(10));
  const { tenantId } = principal;
  const headers = await toHeaderChange(deps, { tenantId, endpointId: id }, input.headers ?? {});
  const settings = {
    id,
    url,
    name: input.name ?? null,
    revision: 1,
    orderingMode: input.ordering_mode ?? "unordered",
    concurrencyCap: input.concurrency_cap ?? null,
    rateLimitPerSecond: input.rate_limit_per_second ?? null,
    maxHeadHoldSeconds: input.max_head_hold_seconds ?? null,
    onExhausted: input.on_exhausted ?? "advance",
    laneGeneration: 0,
    retryPolicy: mergeRetryPolicy(DEFAULT_RETRY_POLICY, input.retry_policy ?? null),
    payloadFormat: input.payload_format ?? "envelope",
    sourceSignatures: input.source_signatures ?? false,
    headers: changeHeaders([], headers),
    timeoutMs: input.timeout_ms ?? DEFAULT_TIMEOUT_MS,
    pausedAt: null,
    disabledAt: null,
    lastDisabledAt: null,
    disabledReason: null,
    failingSince: null,
    disableAfterFailingSeconds:
      input.disable_after_failing_seconds === undefined
        ? DEFAULT_DISABLE_AFTER_FAILING_SECONDS
        : input.disable_after_failing_seconds,
    quarantinedAt: null,
    createdAt: now,
  } satisfies Omit<Endpoint, "route">;
  const endpoint: Endpoint = { ...settings, route: routeOf(settings) };
  const place = { tenantId, endpointId: id, slot: 0 } as const;
  const { secret, text } = await createSecret(deps, place, now);
  const isStored = await deps.endpoints.insert(tenantId, endpoint, secret, deps.endpointQuotas);
  if (!isStored) throw quotaExceeded("endpoints");
  return { endpoint, secret: text };
}
