import { deliveryId, firstEventIdAt, type TenantDeliveryRef } from "../../core/ids.ts";
import { retentionMs } from "../../core/retention.ts";
import type { RetryPolicy } from "../../core/retry-policy.ts";
import { MAX_RING_DELAY_MS, type DeliveryCall } from "../deliver/delivery-call.ts";
import { recordAttempt, type RecordAttemptDeps } from "../deliver/record-attempt.ts";
import { MAX_REPORT_WAIT_MS } from "../deliver/report.ts";
import { releaseHeld, type ReleaseHeldDeps } from "../endpoint/release-held.ts";
import { goOnWithReplays, type GoOnWithReplaysDeps } from "../replay/go-on.ts";
import { expandOverdue, type ExpandFanOutDeps } from "../publish/expand-fan-out.ts";
import type { Runtime } from "../runtime.ts";
import { emptyOutboxes, type EmptyOutboxesDeps, type OutboxWalk } from "./empty-outboxes.ts";
import { createLaneWalk, wakeLanes, type LaneWalk, type WakeLanesDeps } from "./wake-lanes.ts";

type DueDelivery = TenantDeliveryRef & { attemptCount: number; nextAttemptAt: number };

/** The place of a held delivery in the order in which holds end. */
type HoldKey = [holdUntil: number, tenantId: string, eventId: string, endpointId: string, replayNo: number];
type EventKey = [tenantId: string, eventId: string];
type OldEvent = { tenantId: string; id: string; payloadRef: string; expiresAt: number };

interface ExpiredLease extends TenantDeliveryRef {
  attemptNumber: number;
  token: string;
  requestedAt: number;
  endpointUrl: string;
  policy: RetryPolicy;
  failureCount: number;
  relayFaultCount: number;
  scheduledAt: number;
  expiresAt: number;
  isLast?: boolean;
}

export interface WatchDeps
  extends
    RecordAttemptDeps,
    ReleaseHeldDeps,
    WakeLanesDeps,
    EmptyOutboxesDeps,
    ExpandFanOutDeps,
    GoOnWithReplaysDeps,
    Pick<Runtime, "now"> {
  listDue(until: number, after: DueDelivery | null, limit: number): Promise<DueDelivery[]>;
  listLongRetriesDue(from: number, until: number, minDelayMs: number, limit: number): Promise<DueDelivery[]>;
  listExpiredLeases(now: number, limit: number): Promise<ExpiredLease[]>;
  listEndedHolds(now: number, limit: number): Promise<TenantDeliveryRef[]>;
  listStrandedHolds(
    after: HoldKey | null,
    limit: number,
  ): Promise<{ endpoints: { tenantId: string; endpointId: string }[]; next: HoldKey | null }>;
  findNextDue(now: number): Promise<{ nextDueAt: number | null; oldestDueAt: number | null }>;
  /** Events with ids before `beforeId`, in some order, behind `after`; and where to go on, null at the end. */
  walkOldEvents(
    after: EventKey,
    beforeId: string,
    limit: number,
  ): Promise<{ events: OldEvent[]; next: EventKey | null }>;
  retentionDays: number;
  /**
   * Deletes what is closed of these events, at most `maxRows` rows of a kind; `hasMore` when some are left. `freedObjects`
   * are payload objects that no event refers to any more.
   */
  deleteEvents(events: OldEvent[], maxRows: number): Promise<{ freedObjects: string[]; hasMore: boolean }>;
  deletePayloads(objectKeys: string[]): Promise<void>;
  endDeliveries(
    ends: (TenantDeliveryRef & { status: "failed" | "expired"; finalOutcome: "expired" })[],
    now: number,
  ): Promise<void>;
  /** Rings through the queue, or makes the attempts itself when the queue refuses. */
  ringNow(calls: DeliveryCall[]): Promise<void>;
  /** How long the oldest waiting doorbell has waited; 0 when unknown. */
  queueAgeMs(): Promise<number>;
  /** Until when reports of attempts may be waiting outside the ledger; 0 when none are known of. */
  reportsUntil(): Promise<number>;
  logFault(what: string, error: unknown): void;
}

/** What a watchdog remembers from tick to tick. Forgetting it costs doubled doorbells, nothing else. */
export interface WatchState {
  /** Long retries due until here have been rung. */
  longRetriesUntil: number;
  /** Where the pass over overdue work goes on; null between passes. */
  overdueAfter: DueDelivery | null;
  overduePassAt: number;
  holdsAfter: HoldKey | null;
  lanes: LaneWalk;
  outboxes: OutboxWalk;
  eventsAfter: EventKey;
}

const PAGE = 500;
/** Attempts, and deliveries, deleted by one tick: an event may have tens of thousands, and a batch of D1 has 30 seconds. */
const ROWS_DELETED_AT_ONCE = 5_000;
/** Work that is due for longer than this, and longer than the queue is behind, has lost its doorbell. */
const OVERDUE_MS = 30_000;
const LONGEST_SLEEP_MS = 60_000;
const MAX_RECOVERY_MS = 30_000;

export function createWatchState(now: number): WatchState {
  return {
    longRetriesUntil: now - LONGEST_SLEEP_MS,
    overdueAfter: null,
    overduePassAt: 0,
    holdsAfter: null,
    lanes: createLaneWalk(),
    outboxes: { after: "" },
    eventsAfter: ["", ""],
  };
}

/**
 * Brings back whatever a crash, a lost message or an outage left behind, a bounded part of it a tick. Says when to tick
 * again, null when nothing is open. A step that fails is logged and does not keep the others from running.
 */
export async function tick(deps: WatchDeps, state: WatchState): Promise<number | null> {
  const now = deps.now();
  const steps: [string, () => Promise<boolean>][] = [
    ["expand fan-outs", () => expandOverdue(deps, now)],
    ["recover leases", () => recoverLeases(deps, now)],
    ["end holds", () => endHolds(deps, now)],
    ["release stranded holds", () => releaseStranded(deps, state)],
    ["wake lanes", () => wakeLanes(deps, state.lanes, now)],
    ["ring long retries", () => ringLongRetries(deps, state, now)],
    ["ring overdue", () => ringOverdue(deps, state, now)],
    ["go on with replays", () => goOnWithReplays(deps)],
    ["publish operational events", () => emptyOutboxes(deps, state.outboxes)],
    ["delete expired", () => deleteExpired(deps, state, now)],
  ];
  let moreToDo = false;
  for (const [name, step] of steps) {
    try {
      if (await step()) moreToDo = true;
    } catch (error) {
      deps.logFault(`watchdog: ${name}`, error);
    }
  }
  if (moreToDo) return deps.now() + 100;
  return nextTickAt(deps, state);
}

async function nextTickAt(deps: WatchDeps, state: WatchState): Promise<number | null> {
  const now = deps.now();
  try {
    const { nextDueAt, oldestDueAt } = await deps.findNextDue(now);
    if (nextDueAt === null && oldestDueAt === null) return null;
    // What is due already is on its way; it is looked after once it is overdue and the last pass is old.
    const overdueAt =
      oldestDueAt === null ? Infinity : Math.max(oldestDueAt + OVERDUE_MS, state.overduePassAt + OVERDUE_MS);
    const wakeAt = Math.min(nextDueAt ?? Infinity, overdueAt, now + LONGEST_SLEEP_MS);
    return Math.max(wakeAt, now + 1_000);
  } catch (error) {
    deps.logFault("watchdog: find next due", error);
    return now + OVERDUE_MS;
  }
}

/** A request may have been made and its report be waiting while the ledger was away: such reports go first. */
async function recoverLeases(deps: WatchDeps, now: number): Promise<boolean> {
  const endedBefore = (await deps.reportsUntil()) > now ? now - MAX_REPORT_WAIT_MS : now;
  const leases = await deps.listExpiredLeases(endedBefore, PAGE);
  let recovered = 0;
  for (const lease of leases) {
    // A ledger that takes its time for each must not keep a tick from all else; the next goes on here.
    if (deps.now() - now > MAX_RECOVERY_MS) return true;
    try {
      await recordAttempt(deps, {
        ...lease,
        lane: null,
        respondedAt: now,
        wire: { kind: "abandoned" },
        retryAfterMs: null,
        responseBodySha256: null,
        responseHeadersJson: null,
        partnerRequestId: null,
      });
      recovered++;
    } catch (error) {
      // One that cannot be recovered must not keep those behind it.
      deps.logFault("watchdog: recover a lease", error);
    }
  }
  return recovered === PAGE;
}

async function endHolds(deps: WatchDeps, now: number): Promise<boolean> {
  const holds = await deps.listEndedHolds(now, PAGE);
  const ends = holds.map((ref) => ({ ...ref, status: "expired" as const, finalOutcome: "expired" as const }));
  if (ends.length > 0) await deps.endDeliveries(ends, now);
  return holds.length === PAGE;
}

async function releaseStranded(deps: WatchDeps, state: WatchState): Promise<boolean> {
  const { endpoints, next } = await deps.listStrandedHolds(state.holdsAfter, PAGE);
  state.holdsAfter = next;
  for (const { tenantId, endpointId } of endpoints) await releaseHeld(deps, tenantId, endpointId);
  return false;
}

async function ringLongRetries(deps: WatchDeps, state: WatchState, now: number): Promise<boolean> {
  const due = await deps.listLongRetriesDue(state.longRetriesUntil, now, MAX_RING_DELAY_MS, PAGE);
  if (due.length > 0) await deps.ringNow(due.map(toCall));
  const full = due.length === PAGE;
  // Rows of one millisecond that a full page cut off are overdue work later.
  state.longRetriesUntil = full ? due.at(-1)!.nextAttemptAt : now;
  return full;
}

async function ringOverdue(deps: WatchDeps, state: WatchState, now: number): Promise<boolean> {
  if (state.overdueAfter === null && now - state.overduePassAt < OVERDUE_MS) return false;
  const until = now - Math.max(OVERDUE_MS, await deps.queueAgeMs());
  const due = await deps.listDue(until, state.overdueAfter, PAGE);
  // A pass that finds nothing puts nothing off.
  if (state.overdueAfter === null && due.length > 0) state.overduePassAt = now;
  if (due.length > 0) await deps.ringNow(due.map(toCall));
  state.overdueAfter = due.length === PAGE ? due.at(-1)! : null;
  return due.length === PAGE;
}

/** Only events as old as the setting can have expired; of those some are kept longer, for their deliveries' sake. */
async function deleteExpired(deps: WatchDeps, state: WatchState, now: number): Promise<boolean> {
  const oldestKept = firstEventIdAt(now - retentionMs(deps.retentionDays));
  const { events, next } = await deps.walkOldEvents(state.eventsAfter, oldestKept, PAGE);
  const expired = events.filter(({ expiresAt }) => expiresAt <= now);
  if (expired.length > 0) {
    const { freedObjects, hasMore } = await deps.deleteEvents(expired, ROWS_DELETED_AT_ONCE);
    // After the rows: what no row refers to and is left here goes by the bucket's own rules.
    if (freedObjects.length > 0) await deps.deletePayloads(freedObjects);
    if (hasMore) return true;
  }
  state.eventsAfter = next ?? ["", ""];
  return expired.length > 0 && next !== null;
}

function toCall(due: DueDelivery): DeliveryCall {
  return { tenantId: due.tenantId, deliveryId: deliveryId(due), attemptNumber: due.attemptCount + 1 };
}
