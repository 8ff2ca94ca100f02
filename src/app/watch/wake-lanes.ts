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

/** Where the walk over lanes goes on, and when it last began. */
export interface LaneWalk {
  after: string;
  passAt: number;
}

const PAGE = 500;
const OVERDUE_MS = 30_000;
/** To look through itself costs a long lane reads that grow with it: it has its turn once in so long, for a while. */
const LONG_LANE_MS = 600_000;
/** While anything is open a pass begins at least this often. */
const TURN_MS = 60_000;

export function createLaneWalk(): LaneWalk {
  return { after: "", passAt: 0 };
}

/** Lanes look after themselves; this is for those whose alarm or wake was lost. Says whether there is more to do. */
export async function wakeLanes(deps: WakeLanesDeps, walk: LaneWalk, now: number): Promise<boolean> {
  if (walk.after === "" && now - walk.passAt < OVERDUE_MS) return false;
  if (walk.after === "") walk.passAt = now;
  const { lanes, next } = await deps.listOverdueLanes(walk.after, now - OVERDUE_MS, PAGE);
  for (const lane of lanes) if (lane.isDue || isTurnOf(lane.endpointId, now)) deps.wakeLane(lane);
  walk.after = next ?? "";
  return next !== null;
}

/**
 * Each has its turn at a time of its own, which its id and the clock say: a watchdog that remembered when it woke whom would wake
 * all of them at once whenever it has been out of memory, which it is after seconds of rest.
 */
function isTurnOf(endpointId: string, now: number): boolean {
  let offset = 0;
  for (const character of endpointId) offset = (offset * 31 + character.charCodeAt(0)) % LONG_LANE_MS;
  return (now + offset) % LONG_LANE_MS < TURN_MS;
}
