import { restsUntil, setCapacity } from "./drain.ts";
import type { LaneDeps, LaneState } from "./lane-state.ts";
import { STORE_TIMEOUT_MS } from "./run-head.ts";

/** Whoever calls while a lane is full may have changed its endpoint: that is asked this often at most. */
const LOOK_MS = 5_000;

/**
 * Whether another request may begin by what this lane has under way. While that, or what others have, keeps it from reading
 * its rows, a call makes it look whether the endpoint is another by now; if so, it reads anew from the beginning.
 */
export async function hasRoom(deps: LaneDeps, state: LaneState): Promise<boolean> {
  const isFull = () => state.running.size >= state.capacity || restsUntil(state, deps.now()) !== null;
  const isStuck = isFull() || (state.spare !== null && state.elsewhere.size > 0);
  if (!isStuck) return true;
  const now = deps.now();
  if (now - state.lookedAt < LOOK_MS) {
    state.lookAgainAt = state.lookedAt + LOOK_MS;
    return !isFull();
  }
  state.lookedAt = now;
  state.lookAgainAt = null;
  const { tenantId, endpointId } = state;
  const settings = await deps.within(STORE_TIMEOUT_MS, deps.loadSettings(tenantId, endpointId));
  if (settings !== null && settings.revision !== state.revision) {
    setCapacity(state, settings, now);
    state.revision = settings.revision;
    Object.assign(state, { spare: null, fromKey: "", walkAgainAt: 0 });
  }
  return !isFull();
}
