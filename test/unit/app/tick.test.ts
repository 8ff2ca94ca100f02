import { describe, expect, test } from "vitest";
import { createWatchState, tick, type WatchDeps } from "../../../src/app/watch/tick.ts";
import { deliveryId } from "../../../src/core/ids.ts";
import { attemptReport, T0 } from "./support/report.ts";
import { dueDelivery, quietScene } from "./support/watch.ts";

const PAGE = 500;
const SECOND_MS = 1_000;

const many = <T>(count: number, make: (n: number) => T) => Array.from({ length: count }, (_, n) => make(n));

/** A lease of attempt 1 that ended `endedMsAgo`. */
function lease(n: number, endedMsAgo: number) {
  const { eventId } = dueDelivery(n, 0);
  return attemptReport({ eventId, requestedAt: T0 - endedMsAgo - 45_000 });
}

describe("when to tick again", () => {
  test("is never when nothing is open", async () => {
    expect(await tick(quietScene().deps, createWatchState(T0))).toBeNull();
  });

  test.each<[string, number | null, number | null, number]>([
    ["the next due work", 20, null, 20],
    ["a minute at most", 3_600, null, 60],
    ["a second at least", 0.2, null, 1],
    ["a second, too, for a lease that cannot be recovered yet", -300, null, 1],
    ["when what is due would be overdue", null, -10, 20],
    ["the earlier of the two", 12, -10, 12],
  ])("is at %s", async (_name, nextDueInSeconds, oldestDueInSeconds, inSeconds) => {
    const at = (seconds: number | null) => (seconds === null ? null : T0 + seconds * SECOND_MS);
    const times = { nextDueAt: at(nextDueInSeconds), oldestDueAt: at(oldestDueInSeconds) };
    const { deps } = quietScene({ findNextDue: async () => times });
    expect(await tick(deps, createWatchState(T0))).toBe(T0 + inSeconds * SECOND_MS);
  });

  test("is soon when the ledger cannot say", async () => {
    const { deps, faults } = quietScene({ findNextDue: () => Promise.reject(new Error("away")) });
    expect(await tick(deps, createWatchState(T0))).toBe(T0 + 30 * SECOND_MS);
    expect(faults).toEqual(["watchdog: find next due: Error: away"]);
  });

  test.each<[string, (full: number) => Partial<WatchDeps>]>([
    ["leases", (full) => ({ listExpiredLeases: async () => many(full, (n) => lease(n, 1)) })],
    ["ended holds", (full) => ({ listEndedHolds: async () => many(full, (n) => dueDelivery(n, 1)) })],
    ["long retries", (full) => ({ listLongRetriesDue: async () => many(full, (n) => dueDelivery(n, 1)) })],
    ["overdue work", (full) => ({ listDue: async () => many(full, (n) => dueDelivery(n, 31 * SECOND_MS)) })],
  ])("is at once after a full page of %s, and not after one that is not full", async (_name, page) => {
    expect(await tick(quietScene(page(PAGE)).deps, createWatchState(T0))).toBe(T0 + 100);
    expect(await tick(quietScene(page(PAGE - 1)).deps, createWatchState(T0))).toBeNull();
  });
});

describe("a step that fails", () => {
  const refuse = () => Promise.reject(new Error("away"));
  const lists = [
    "listExpiredLeases",
    "listEndedHolds",
    "listStrandedHolds",
    "listLongRetriesDue",
    "listDue",
    "walkOldEvents",
    "findNextDue",
  ];

  test.each<[string, string, Partial<WatchDeps>]>([
    ["recover leases", "listExpiredLeases", { listExpiredLeases: refuse }],
    ["recover leases", "listExpiredLeases", { reportsUntil: refuse }],
    ["recover a lease", "", { listExpiredLeases: async () => [lease(1, 1)], closeAttempts: refuse }],
    ["end holds", "listEndedHolds", { listEndedHolds: refuse }],
    ["end holds", "", { listEndedHolds: async () => [dueDelivery(1, 1)], endDeliveries: refuse }],
    ["release stranded holds", "listStrandedHolds", { listStrandedHolds: refuse }],
    ["ring long retries", "listLongRetriesDue", { listLongRetriesDue: refuse }],
    ["ring long retries", "", { listLongRetriesDue: async () => [dueDelivery(1, 1)], ringNow: refuse }],
    ["ring overdue", "listDue", { listDue: refuse }],
    ["ring overdue", "listDue", { queueAgeMs: refuse }],
    ["delete expired", "walkOldEvents", { walkOldEvents: refuse }],
  ])("(%s) is logged by its name, and all others are made", async (name, failing, over) => {
    const { deps, called, faults } = quietScene(over);
    await tick(deps, createWatchState(T0));
    expect(faults).toEqual([`watchdog: ${name}: Error: away`]);
    for (const list of lists.filter((list) => list !== failing)) expect(called).toContain(list);
  });
});

describe("overdue work", () => {
  test("is all rung, once a pass and oldest first, however many pages it takes", async () => {
    // Many of one millisecond, across the ends of pages.
    const ledger = many(1_203, (n) => dueDelivery(n, 60_000 - Math.floor(n / 700)));
    const { deps, clock, rung } = quietScene({
      listDue: async (until, after, limit) => {
        const from = after ? ledger.findIndex(({ eventId }) => eventId === after.eventId) + 1 : 0;
        return ledger.filter(({ nextAttemptAt }, n) => n >= from && nextAttemptAt <= until).slice(0, limit);
      },
    });
    const state = createWatchState(T0);
    expect(await tick(deps, state)).toBe(T0 + 100);
    clock.now += 100;
    expect(await tick(deps, state)).toBe(T0 + 200);
    clock.now += 100;
    expect(await tick(deps, state)).toBeNull();
    expect(rung.map((page) => page.length)).toEqual([500, 500, 203]);
    expect(rung.flat()).toEqual(ledger.map(deliveryId));

    clock.now = T0 + 29_999;
    await tick(deps, state);
    expect(rung).toHaveLength(3);
    clock.now = T0 + 30_000;
    await tick(deps, state);
    expect(rung.at(-1)).toEqual(rung[0]);
  });

  test("is what is due for thirty seconds, or for longer than the queue is behind", async () => {
    const asked: number[] = [];
    for (const ageMs of [0, 29_000, 90_000]) {
      const listDue: WatchDeps["listDue"] = async (until) => {
        asked.push(T0 - until);
        return [];
      };
      await tick(quietScene({ listDue, queueAgeMs: async () => ageMs }).deps, createWatchState(T0));
    }
    expect(asked).toEqual([30_000, 30_000, 90_000]);
  });

  test("goes on from the same place after a ring that failed", async () => {
    const asked: (string | undefined)[] = [];
    let rings = 0;
    const { deps } = quietScene({
      listDue: async (_until, after) => {
        asked.push(after?.eventId);
        return many(PAGE, (n) => dueDelivery(n, 60_000));
      },
      ringNow: async () => {
        if (++rings === 2) throw new Error("away");
      },
    });
    const state = createWatchState(T0);
    for (let n = 0; n < 3; n++) await tick(deps, state);
    const last = dueDelivery(PAGE - 1, 0).eventId;
    expect(asked).toEqual([undefined, last, last]);
  });
});

test("long retries are rung for the attempt that is next, each stretch of time once", async () => {
  const stretches: number[][] = [];
  const calls: object[] = [];
  let due = many(PAGE, (n) => ({ ...dueDelivery(n, PAGE - n), attemptCount: 3 }));
  const { deps, clock } = quietScene({
    listLongRetriesDue: async (from, until, minDelayMs) => {
      stretches.push([from - T0, until - T0, minDelayMs]);
      return due;
    },
    ringNow: async (rung) => void calls.push(...rung),
  });
  const state = createWatchState(T0);
  await tick(deps, state);
  expect(calls[0]).toEqual({ tenantId: "ten_1", deliveryId: deliveryId(dueDelivery(0, 0)), attemptNumber: 4 });
  due = [];
  clock.now = T0 + 100;
  await tick(deps, state);
  clock.now = T0 + 5_000;
  await tick(deps, state);
  // The full page reached as far as its last row, a millisecond before the tick.
  expect(stretches).toEqual([
    [-60_000, 0, 60_000],
    [-1, 100, 60_000],
    [100, 5_000, 60_000],
  ]);
});
