import { beginDrain, continueDrain, isDrained } from "../../core/quarantine.ts";
import { capacityOf } from "../../core/lane.ts";
import { isAnswer } from "../../core/outcome.ts";
import type { AttemptReport } from "../deliver/report.ts";
import type { LaneDeps, LaneSettings, LaneState } from "./lane-state.ts";
import { STORE_TIMEOUT_MS } from "./run-head.ts";

/** A move back to the queues is one transaction: so much at most. What is longer is drained here first. */
const MAX_MOVED_BACK = 1_000;
const LEAVE_CHECK_MS = 5_000;

/** Takes over how many requests there may be at once; a quarantine that is another than the last begins at one. */
export function setCapacity(state: LaneState, settings: LaneSettings, now: number): void {
  const { quarantinedAt } = settings;
  if (quarantinedAt === null) state.drain = null;
  else if (state.drain?.quarantinedAt !== quarantinedAt) state.drain = beginDrain(quarantinedAt, now);
  state.capacity = state.drain?.size ?? capacityOf(settings);
}

/** What a request's end says of a receiver in quarantine. Faults of ours say nothing. */
export function noteEnd(state: LaneState, { wire, requestedAt }: AttemptReport, now: number): void {
  if (state.drain === null || wire.kind === "internal") return;
  state.drain = continueDrain(state.drain, { startedAt: requestedAt, isAnswered: isAnswer(wire) }, now);
  state.capacity = state.drain.size;
}

/** Until when a receiver that has not answered is left alone; null when it is not. */
export function restsUntil({ drain }: LaneState, now: number): number | null {
  return drain !== null && drain.notBefore > now ? drain.notBefore : null;
}

/**
 * Ends the quarantine when the receiver answers as much as it may be sent at once, or when nothing is open to find that out
 * with. Null when it is not time for that, false when it is to be tried again.
 */
export async function leaveWhenDone(
  deps: LaneDeps,
  state: LaneState,
  isEmpty: boolean,
  now: number,
): Promise<boolean | null> {
  const { drain, tenantId, endpointId } = state;
  if (drain === null) return null;
  if (!isEmpty) {
    if (!isDrained(drain) || now - state.leftAt < LEAVE_CHECK_MS) return null;
    state.leftAt = now;
    const open = await deps.within(STORE_TIMEOUT_MS, deps.countOpen(tenantId, endpointId, MAX_MOVED_BACK + 1));
    if (open > MAX_MOVED_BACK) return null;
  }
  return deps.leaveQuarantine({ tenantId, endpointId }, drain.quarantinedAt);
}
