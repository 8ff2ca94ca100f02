import { wakeBy, type LaneDeps, type LaneSettings, type LaneState } from "./lane-state.ts";
import { STORE_TIMEOUT_MS } from "./run-head.ts";
import { settleHeads } from "./settle-heads.ts";

/** While requests of a former object, or of a queue, take room of the cap, the ledger is asked about them this often. */
export const ELSEWHERE_CHECK_MS = 1_000;

/**
 * Asks what others have under way: of the whole lane when this object takes over and when the endpoint was changed (queues
 * may have had its work before), from then on of what was found, until there is nothing. What nobody answers for any more is
 * taken back, wherever in the lane it stands.
 */
export async function lookElsewhere(
  deps: LaneDeps,
  state: LaneState,
  settings: LaneSettings,
  now: number,
): Promise<void> {
  const { tenantId, endpointId, elsewhereAsOf: asOf } = state;
  const isFirst = asOf?.revision !== settings.revision;
  if (!isFirst && (state.elsewhere.size === 0 || now - asOf.at < ELSEWHERE_CHECK_MS)) return;
  const laneKeys = isFirst ? null : [...state.elsewhere.keys()];
  const inFlight = await deps.within(STORE_TIMEOUT_MS, deps.listInFlight(tenantId, endpointId, laneKeys));
  state.elsewhere = new Map();
  for (const { laneKey, lockedUntil } of inFlight) {
    if (state.running.has(laneKey)) continue;
    // Several may be under way in one key, begun before it was one.
    const known = state.elsewhere.get(laneKey) ?? { count: 0, lockedUntil: Infinity };
    state.elsewhere.set(laneKey, {
      count: known.count + 1,
      lockedUntil: Math.min(lockedUntil, known.lockedUntil),
    });
  }
  state.elsewhereAsOf = { revision: settings.revision, at: now };
  for (const [laneKey, { lockedUntil }] of state.elsewhere) {
    if (lockedUntil > now) continue;
    const view = await deps.loadLane(tenantId, endpointId, laneKey, 1, 1, now);
    if (view.lanes[0]?.laneKey !== laneKey || !(await settleHeads(deps, state, view, settings, now))) continue;
    state.elsewhere.delete(laneKey);
    // The walk may have passed it.
    wakeBy(state, now + ELSEWHERE_CHECK_MS);
  }
}

/** The room that is taken besides what the heads of these lane keys show, of which each shows one request at most. */
export function roomTakenBeside({ running, elsewhere }: LaneState, heads: ReadonlySet<string>): number {
  const own = [...running.keys()].filter((laneKey) => !heads.has(laneKey)).length;
  const others = [...elsewhere].map(([laneKey, { count }]) => (heads.has(laneKey) ? count - 1 : count));
  return others.reduce((sum, count) => sum + count, own);
}

/** What was found in another mode takes no room in this one; whoever comes back to that asks anew. */
export function forgetElsewhere(state: LaneState): void {
  state.elsewhere = new Map();
  state.elsewhereAsOf = null;
}
