import type { Replay, ReplayState } from "../../core/replay.ts";
import { AppError } from "../app-error.ts";
import { requireAdmin, type Principal } from "../principal.ts";
import { tooManyRunning } from "./create-replay.ts";
import type { ReplayDeps } from "./deps.ts";
import { getReplay } from "./read-replay.ts";

const OVER_AT_ONCE: ReadonlySet<ReplayState> = new Set(["completed", "failed"]);

/**
 * Begins what was a dry run: with its filter, and as of now. Doing it again changes nothing. 409 when it has ended, or too many
 * run.
 */
export async function startReplay(deps: ReplayDeps, principal: Principal, id: string): Promise<Replay> {
  requireAdmin(principal);
  const { filter, state: before } = await getReplay(deps, principal, id);
  const replay = await deps.startReplay(principal.tenantId, id, filter.endpointId, deps.now());
  if (replay?.state === "dry_run") throw tooManyRunning();
  // One that has nothing to do is over with its start.
  const isOverAtOnce = before === "dry_run" && replay !== null && OVER_AT_ONCE.has(replay.state);
  if (replay === null || (replay.state !== "running" && !isOverAtOnce)) throw hasEnded(replay);
  if (replay.state === "running") deps.callWatchdog();
  return replay;
}

/** No step of it is taken any more once this has answered; what it has made goes on. Doing it again changes nothing. */
export async function cancelReplay(deps: ReplayDeps, principal: Principal, id: string): Promise<Replay> {
  requireAdmin(principal);
  await getReplay(deps, principal, id);
  const replay = await deps.cancelReplay(principal.tenantId, id, deps.now());
  if (replay?.state !== "cancelled") throw hasEnded(replay);
  return replay;
}

function hasEnded(replay: Replay | null): AppError {
  return new AppError("replay_ended", `The replay is ${replay?.state ?? "gone"} already.`);
}
