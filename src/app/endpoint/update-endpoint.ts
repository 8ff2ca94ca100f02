import { z } from "zod";
import type { Endpoint, EndpointChanges, EndpointWithOverrides, RoutingChanges } from "../../core/model.ts";
import { DEFAULT_RETRY_POLICY, mergeRetryPolicy, type RetryPolicyInput } from "../../core/retry-policy.ts";
import { notFound } from "../app-error.ts";
import { parseInput } from "../parse-input.ts";
import { requireAdmin, type Principal } from "../principal.ts";
import { untilFresh } from "../until-fresh.ts";
import type { EndpointDeps } from "./deps.ts";
import { getEndpoint } from "./read-endpoint.ts";
import { changeRouting, type ChangeRoutingDeps } from "./change-routing.ts";
import { acceptUrl, ENDPOINT_FIELDS } from "./endpoint-fields.ts";
import { changeHeaders, toHeaderChange } from "./header-input.ts";

export const UpdateEndpointInput = z.strictObject({ ...ENDPOINT_FIELDS, url: z.string().optional() });
export type UpdateEndpointInput = z.infer<typeof UpdateEndpointInput>;

type UpdateEndpointDeps = Pick<EndpointDeps, "endpoints" | "destinationRules" | "secretsKeys" | "randomBytes"> &
  ChangeRoutingDeps;

/**
 * Deliveries that exist keep the policy they were made with; everything else holds from the next attempt on: once this has
 * answered none starts under the old settings.
 */
export async function updateEndpoint(
  deps: UpdateEndpointDeps,
  principal: Principal,
  id: string,
  body: unknown,
): Promise<Endpoint> {
  requireAdmin(principal);
  const input = parseInput(UpdateEndpointInput, body);
  const { tenantId } = principal;
  const headers =
    input.headers === undefined ? undefined : await toHeaderChange(deps, { tenantId, endpointId: id }, input.headers);
  const changes: EndpointChanges = {
    url: input.url === undefined ? undefined : acceptUrl(input.url, deps.destinationRules),
    name: input.name,
    payloadFormat: input.payload_format,
    sourceSignatures: input.source_signatures,
    disableAfterFailingSeconds: input.disable_after_failing_seconds,
  };
  const routing: RoutingChanges = {
    orderingMode: input.ordering_mode,
    concurrencyCap: input.concurrency_cap,
    rateLimitPerSecond: input.rate_limit_per_second,
    maxHeadHoldSeconds: input.max_head_hold_seconds,
    onExhausted: input.on_exhausted,
    timeoutMs: input.timeout_ms,
  };
  // Headers are merged into what there is: a URL and the credentials for it change together, or not at all.
  const changesOf = (current: Endpoint): EndpointChanges =>
    headers === undefined ? changes : { ...changes, headers: changeHeaders(current.headers, headers) };
  const { retry_policy: policy } = input;
  if (policy !== undefined) {
    const updated = await updateWithPolicy(deps, tenantId, id, changesOf, policy);
    if (!updated) throw notFound("endpoint");
    if (!isGiven(routing)) return tryAnew(deps, principal, input, updated);
  }
  if (isGiven(routing)) {
    await changeRouting(deps, tenantId, id, (current) => ({ ...changesOf(current), ...routing }));
    return getEndpoint(deps, principal, id);
  }
  if (headers !== undefined) {
    return tryAnew(deps, principal, input, await updateFresh(deps, tenantId, id, changesOf));
  }
  const updated = await deps.endpoints.update(tenantId, id, changes);
  if (!updated) throw notFound("endpoint");
  return tryAnew(deps, principal, input, updated);
}

/** Another URL is another receiver: what was held against the one before is forgotten. */
async function tryAnew(
  deps: UpdateEndpointDeps,
  principal: Principal,
  input: UpdateEndpointInput,
  updated: Endpoint,
): Promise<Endpoint> {
  if (input.url === undefined || updated.quarantinedAt === null) return updated;
  await changeRouting(deps, principal.tenantId, updated.id, ({ url }) => ({ url }));
  return getEndpoint(deps, principal, updated.id);
}

async function updateFresh(
  deps: UpdateEndpointDeps,
  tenantId: string,
  id: string,
  changesOf: (current: Endpoint) => EndpointChanges,
): Promise<Endpoint> {
  return untilFresh(async () => {
    const current = await deps.endpoints.find(tenantId, id);
    if (!current) throw notFound("endpoint");
    return deps.endpoints.update(tenantId, id, changesOf(current), current.revision);
  });
}

function isGiven(changes: object): boolean {
  return Object.values(changes).some((value) => value !== undefined);
}

async function updateWithPolicy(
  deps: UpdateEndpointDeps,
  tenantId: string,
  id: string,
  changesOf: (current: Endpoint) => EndpointChanges,
  given: RetryPolicyInput | null,
): Promise<Endpoint> {
  return untilFresh(async () => {
    const found = await deps.endpoints.findWithOverrides(tenantId, id);
    if (!found) throw notFound("endpoint");
    return deps.endpoints.updateWithPolicy(tenantId, id, changesOf(found.endpoint), changePolicy(found, given));
  });
}

/** What is given goes over the present policy, null back to the default; overrides of subscriptions go over the outcome. */
function changePolicy({ tenantRevision, endpoint, overrides }: EndpointWithOverrides, given: RetryPolicyInput | null) {
  const retryPolicy = mergeRetryPolicy(given ? endpoint.retryPolicy : DEFAULT_RETRY_POLICY, given);
  const effective = overrides.map((override) => ({
    subscriptionId: override.subscriptionId,
    retryPolicy: mergeRetryPolicy(retryPolicy, override.retryPolicy),
  }));
  return { tenantRevision, retryPolicy, effective };
}
