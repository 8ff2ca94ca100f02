import type { Endpoint } from "../../core/model.ts";
import { notFound } from "../app-error.ts";
import { Time } from "../field-schemas.ts";
import { parsePage, readPage, type Page } from "../list-input.ts";
import { requireReader, type Principal } from "../principal.ts";
import type { EndpointDeps } from "./deps.ts";

export const ListEndpointsInput = { disabled_after: Time.optional() };

type ReadEndpointDeps = Pick<EndpointDeps, "endpoints">;

export async function getEndpoint(deps: ReadEndpointDeps, principal: Principal, id: string): Promise<Endpoint> {
  requireReader(principal);
  const endpoint = await deps.endpoints.find(principal.tenantId, id);
  if (!endpoint) throw notFound("endpoint");
  return endpoint;
}

export async function listEndpoints(
  deps: ReadEndpointDeps,
  principal: Principal,
  query: unknown,
): Promise<Page<Endpoint>> {
  requireReader(principal);
  const input = parsePage(query, ListEndpointsInput, "ep");
  const disabledAfter = input.disabled_after ?? null;
  return readPage(
    input,
    (request) => deps.endpoints.page(principal.tenantId, { ...request, disabledAfter }),
    (endpoint) => endpoint,
  );
}
