import type { WatchDeps } from "../../../../src/app/watch/tick.ts";
import { T0 } from "./report.ts";

type DueDelivery = Awaited<ReturnType<WatchDeps["listDue"]>>[number];

/**
 * A ledger with nothing open and a queue without delay, for a tick to look at; a test puts in what it is about. `called`
 * says what was asked of it, `rung` for which deliveries a doorbell rang.
 */
export function quietScene(over: Partial<WatchDeps> = {}) {
  const clock = { now: T0 };
  const called: string[] = [];
  const rung: string[][] = [];
  const faults: string[] = [];
  const quiet: WatchDeps = {
    now: () => clock.now,
    random: () => 0.5,
    sleep: async () => {},
    listOpenParts: async () => [],
    findOpenPart: async () => null,
    expandPart: async () => null,
    announce: () => {},
    listDue: async () => [],
    listLongRetriesDue: async () => [],
    listExpiredLeases: async () => [],
    listEndedHolds: async () => [],
    listStrandedHolds: async () => ({ endpoints: [], next: null }),
    findNextDue: async () => ({ nextDueAt: null, oldestDueAt: null }),
    walkOldEvents: async () => ({ events: [], next: null }),
    retentionDays: 30,
    deleteEvents: async () => ({ freedObjects: [], hasMore: false }),
    deletePayloads: async () => {},
    endDeliveries: async () => {},
    closeAttempts: async () => {},
    listRecentAnswers: async () => [],
    releaseHeldPart: async () => [],
    queueAgeMs: async () => 0,
    reportsUntil: async () => 0,
    wakeLane: () => {},
    listRaisedTenants: async () => [],
    listDueReplayParts: async () => [],
    walkReplayable: async () => ({ walked: [], mayHaveMore: false }),
    takeReplayStep: async () => [],
    takeBackfillStep: async () => [],
    walkEvents: async () => ({ events: [], mayHaveMore: false }),
    findTenantRevision: async () => 1,
    subscriptions: { find: async () => null },
    eventTypes: { find: async () => null },
    findSourceName: async () => null,
    getPayload: async () => null,
    putOffReplayStep: async () => {},
    failReplay: async () => {},
    publishRaised: async () => false,
    listOverdueLanes: async () => ({ lanes: [], next: null }),
    ringNow: async (calls) => void rung.push(calls.map(({ deliveryId }) => deliveryId)),
    ringLater: () => {},
    logAttempt: () => {},
    logFault: (what, error) => void faults.push(`${what}: ${String(error)}`),
    ...over,
  };
  const deps = Object.fromEntries(
    Object.entries(quiet).map(([name, does]) => [
      name,
      typeof does !== "function"
        ? does
        : (...input: never[]) => {
            called.push(name);
            return (does as (...input: never[]) => unknown)(...input);
          },
    ]),
  ) as unknown as WatchDeps;
  return { deps, clock, called, rung, faults };
}

/** The n-th delivery of a ledger in order of event id, due `overdueMs` ago. */
export function dueDelivery(n: number, overdueMs: number): DueDelivery {
  const eventId = `evt_01k7xq3v5h${String(n).padStart(16, "0")}`;
  return {
    tenantId: "ten_1",
    eventId,
    endpointId: "ep_0123456789abcdef",
    replayNo: 0,
    attemptCount: 0,
    nextAttemptAt: T0 - overdueMs,
  };
}
