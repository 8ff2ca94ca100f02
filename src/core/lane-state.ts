export type LaneStateName = "disabled" | "paused" | "blocked" | "waiting" | "running" | "idle";

interface LaneStanding {
  disabledAt: number | null;
  pausedAt: number | null;
  heads: { status: string; blockedSince: number | null; nextAttemptAt: number | null }[];
}

/** The first that holds (contract §7). `waiting`: a head waits for the time of its next attempt. */
export function laneStateName({ disabledAt, pausedAt, heads }: LaneStanding, now: number): LaneStateName {
  if (disabledAt !== null) return "disabled";
  if (pausedAt !== null) return "paused";
  if (heads.some(({ blockedSince }) => blockedSince !== null)) return "blocked";
  if (heads.some(({ status, nextAttemptAt }) => status === "pending" && (nextAttemptAt ?? 0) > now)) return "waiting";
  return heads.length > 0 ? "running" : "idle";
}
