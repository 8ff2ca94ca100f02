import type { Replay } from "../../core/replay.ts";
import { notFound } from "../app-error.ts";
import { parsePage, readPage, type Page } from "../list-input.ts";
import { requireReader, type Principal } from "../principal.ts";
import type { ReplayDeps } from "./deps.ts";

export async function getReplay(
  deps: Pick<ReplayDeps, "findReplay">,
  principal: Principal,
  id: string,
): Promise<Replay> {
  requireReader(principal);
  const replay = await deps.findReplay(principal.tenantId, id);
  if (!replay) throw notFound("replay");
  return replay;
}

export async function listReplays(
  deps: Pick<ReplayDeps, "listReplays">,
  principal: Principal,
  query: unknown,
): Promise<Page<Replay>> {
  requireReader(principal);
  return readPage(
    parsePage(query, {}, "rpl"),
    (request) => deps.listReplays(principal.tenantId, request),
    (replay) => replay,
  );
}
