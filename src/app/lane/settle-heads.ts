import { endOfWait, headHoldEndsAt } from "../../core/lane-end.ts";
import { recordAttempt } from "../deliver/record-attempt.ts";
import { MAX_REPORT_WAIT_MS } from "../deliver/report.ts";
import { abandonedReport } from "./abandoned-report.ts";
import { wakeBy, type LaneDeps, type LaneSettings, type LaneState, type LaneView } from "./lane-state.ts";

/** Ends heads whose waiting has ended and takes back leases that have; says whether the lane must be read again. */
export async function settleHeads(
  deps: LaneDeps,
  state: LaneState,
  view: LaneView,
  settings: LaneSettings,
  now: number,
): Promise<boolean> {
  let settled = false;
  for (const { laneKey, blocked, deliveries } of view.lanes) {
    const head = deliveries[0]!;
    if (state.running.has(laneKey)) continue;
    if (head.status === "processing") {
      if (!(await isAbandoned(deps, head.lockedUntil!, now))) continue;
      await recordAttempt(deps, abandonedReport(head, now));
      settled = true;
      continue;
    }
    const { pausedAt, maxHeadHoldSeconds } = settings;
    const { resumedAt } = head.endpoint;
    const end = endOfWait(
      {
        ...head,
        blocked,
        endpointDisabled: settings.disabledAt !== null,
        endpointDeleted: settings.deletedAt !== null,
        pausedAt,
        resumedAt,
        maxHeadHoldSeconds,
      },
      now,
    );
    if (!end) continue;
    await deps.endHead(head, end, now);
    settled = true;
  }
  return settled;
}

/** Whether nobody answers for a claim any more. While nobody can say, it is left alone. */
async function isAbandoned(deps: LaneDeps, lockedUntil: number, now: number): Promise<boolean> {
  if (lockedUntil > now) return false;
  if (lockedUntil <= now - MAX_REPORT_WAIT_MS) return true;
  try {
    return (await deps.reportsUntil()) <= now;
  } catch (error) {
    deps.logFault("lane: ask for reports", error);
    return false;
  }
}

/** A head may back off for longer than it may hold up its lane. */
export function wakeForHolds(state: LaneState, view: LaneView, { maxHeadHoldSeconds }: LaneSettings): void {
  for (const { laneKey, blocked, deliveries } of view.lanes) {
    const head = deliveries[0]!;
    if (blocked || head.status !== "pending" || state.running.has(laneKey)) continue;
    const endsAt = headHoldEndsAt({ ...head, resumedAt: head.endpoint.resumedAt, maxHeadHoldSeconds });
    if (endsAt !== null) wakeBy(state, endsAt);
  }
}
