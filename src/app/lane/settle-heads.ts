import { endOfWait, headHoldEndsAt } from "../../core/lane-end.ts";
import type { LoadedDelivery } from "../deliver/prepare.ts";
import { recordAttempt } from "../deliver/record-attempt.ts";
import { MAX_REPORT_WAIT_MS } from "../deliver/report.ts";
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
      if (head.lockedUntil! > now) continue;
      if (head.lockedUntil! > now - MAX_REPORT_WAIT_MS && (await deps.reportsUntil()) > now) continue;
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

/** While requests of a former object, or of a queue, take room of the cap, the ledger is asked about them this often. */
export const ELSEWHERE_CHECK_MS = 1_000;

/**
 * Asks what others have under way: when this object takes over, when the endpoint was changed (queues may have had its work
 * before), and from then on until there is nothing.
 */
export async function lookElsewhere(
  deps: LaneDeps,
  state: LaneState,
  { revision }: LaneSettings,
  now: number,
): Promise<void> {
  const { elsewhereAsOf: asOf } = state;
  const isKnown = asOf?.revision === revision && (state.elsewhere.size === 0 || now - asOf.at < ELSEWHERE_CHECK_MS);
  if (isKnown) return;
  const inFlight = await deps.listInFlight(state.tenantId, state.endpointId);
  state.elsewhere = new Set(inFlight.filter((laneKey) => !state.running.has(laneKey)));
  state.elsewhereAsOf = { revision, at: now };
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

function abandonedReport(head: LoadedDelivery, now: number) {
  return {
    ...head,
    attemptNumber: head.attemptCount,
    token: head.token!,
    endpointUrl: head.endpoint.url,
    lane: null,
    scheduledAt: head.scheduledAt ?? now,
    requestedAt: head.lastAttemptAt ?? now,
    respondedAt: now,
    wire: { kind: "abandoned" as const },
    retryAfterMs: null,
    responseBodySha256: null,
    responseHeadersJson: null,
    partnerRequestId: null,
  };
}
