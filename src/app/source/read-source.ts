import type { Source } from "../../core/model.ts";
import { notFound } from "../app-error.ts";
import { parsePage, readPage, type Page } from "../list-input.ts";
import { requireReader, type Principal } from "../principal.ts";
import type { SourceDeps } from "./deps.ts";

export async function getSource(deps: SourceDeps, principal: Principal, id: string): Promise<Source> {
  requireReader(principal);
  const source = await deps.sources.find(principal.tenantId, id);
  if (!source) throw notFound("source");
  return source;
}

export async function listSources(deps: SourceDeps, principal: Principal, query: unknown): Promise<Page<Source>> {
  requireReader(principal);
  return readPage(
    parsePage(query, {}, "src"),
    (request) => deps.sources.page(principal.tenantId, request),
    (source) => source,
  );
}
