export interface WakeLanesDeps {
  /**
   * Endpoints whose lane has work that is overdue, or may have for all that a few of its rows say (`isDue` is false then),
   * behind `after`; and where to go on, null at the end.
   */
  listOverdueLanes(
    after: string,
    overdueBefore: number,
    limit: number,
  ): Promise<{ lanes: OverdueLane[]; next: string | null }>;
  wakeLane(lane: { tenantId: string; endpointId: string; generation: number }): void;
}

interface OverdueLane {
  tenantId: string;
  endpointId: string;
  generation: number;
  isDue: boolean;
}

/** Where the walk over lanes goes on, and when long ones were last woken. */
export interface LaneWalk {
  after: string;
  passAt: number;
  longWokenAt: Map<string, number>;
}

const PAGE = 500;
const OVERDUE_MS = 30_000;
/** To look through itself costs a long lane reads that grow with it. */
const LONG_LANE_MS = 600_000;
const MAX_REMEMBERED = 10_000;

export function createLaneWalk(): LaneWalk {
  return { after: "", passAt: 0, longWokenAt: new Map() };
}

/** Lanes look after themselves; this is for those whose alarm or wake was lost. Says whether there is more to do. */
export async function wakeLanes(deps: WakeLanesDeps, walk: LaneWalk, now: number): Promise<boolean> {
  if (walk.after === "" && now - walk.passAt < OVERDUE_MS) return false;
  if (walk.after === "") walk.passAt = now;
  const { lanes, next } = await deps.listOverdueLanes(walk.after, now - OVERDUE_MS, PAGE);
  for (const lane of lanes) if (lane.isDue || isTimeForLong(walk, lane.endpointId, now)) deps.wakeLane(lane);
  walk.after = next ?? "";
  return next !== null;
}

/** The memory is bounded: a lane that it has forgotten is woken once more. */
function isTimeForLong({ longWokenAt }: LaneWalk, endpointId: string, now: number): boolean {
  if (now - (longWokenAt.get(endpointId) ?? -Infinity) < LONG_LANE_MS) return false;
  longWokenAt.delete(endpointId);
  longWokenAt.set(endpointId, now);
  // In the order in which they were woken.
  for (const [oldest, wokenAt] of longWokenAt) {
    if (longWokenAt.size <= MAX_REMEMBERED && now - wokenAt < LONG_LANE_MS) break;
    longWokenAt.delete(oldest);
  }
  return true;
}
