import type { ApiKey } from "../../core/model.ts";
import { notFound } from "../app-error.ts";
import { parsePage, readPage, type Page } from "../list-input.ts";
import { requireReader, type Principal } from "../principal.ts";
import type { ApiKeyDeps } from "./deps.ts";

export async function getApiKey(deps: ApiKeyDeps, principal: Principal, id: string): Promise<ApiKey> {
  requireReader(principal);
  const apiKey = await deps.apiKeys.find(principal.tenantId, id);
  if (!apiKey) throw notFound("API key");
  return apiKey;
}

export async function listApiKeys(deps: ApiKeyDeps, principal: Principal, query: unknown): Promise<Page<ApiKey>> {
  requireReader(principal);
  return readPage(
    parsePage(query, {}, "key"),
    (request) => deps.apiKeys.page(principal.tenantId, request),
    (apiKey) => apiKey,
  );
}
