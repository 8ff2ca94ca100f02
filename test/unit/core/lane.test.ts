import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  capacityOf,
  isAsClaimed,
  MAX_HELD_BYTES,
  peakPayloadBytes,
  READ_AHEAD_BYTES,
  routeOf,
  selectRunnable,
  type LaneHead,
} from "../../../src/core/lane.ts";

const SEED = { seed: 20_262, numRuns: 300 };
const T0 = 1_790_000_000_000;
const SECOND_MS = 1_000;
/** A lane may look again after a lease this often, where it could not be taken back. */
const LEASE_CHECK_MS = 5_000;

function head(laneKey: string, over: Partial<LaneHead> = {}): LaneHead {
  return {
    laneKey,
    status: "pending",
    nextAttemptAt: T0,
    lockedUntil: null,
    blocked: false,
    notBefore: null,
    payloadBytes: 1,
    ...over,
  };
}

const keysOf = (heads: LaneHead[]) => heads.map(({ laneKey }) => laneKey);
const free = { concurrencyCap: 16, ratePerSecond: null, heldBytes: 0 };

const offset = fc.integer({ min: -3_000, max: 3_000 });
const anyHeads: fc.Arbitrary<LaneHead[]> = fc
  .array(
    fc.record({
      status: fc.constantFrom("pending" as const, "pending" as const, "processing" as const),
      nextAttemptAt: offset.map((ms) => T0 + ms),
      lockedUntil: fc.option(offset.map((ms) => T0 + 10 * ms)),
      blocked: fc.boolean(),
      notBefore: fc.option(offset.map((ms) => T0 + ms)),
      payloadBytes: fc.nat({ max: 1_000 }),
    }),
    { maxLength: 40 },
  )
  .map((heads) => heads.map((fields, n) => ({ ...fields, laneKey: `k${n}` })));
const anyLimits = fc.record({
  concurrencyCap: fc.integer({ min: 0, max: 20 }),
  ratePerSecond: fc.option(fc.integer({ min: 1, max: 30 })),
  heldBytes: fc.nat({ max: 1_000 }),
});
const anyStarts = fc
  .array(fc.integer({ min: 0, max: 2_500 }), { maxLength: 60 })
  .map((ages) => ages.map((ms) => T0 - ms).toSorted((a, b) => a - b));

/** Whether a head's own standing lets it start now. */
const isStartable = ({ status, blocked, nextAttemptAt, notBefore }: LaneHead) =>
  status === "pending" && !blocked && nextAttemptAt <= T0 && (notBefore ?? 0) <= T0;

describe("selectRunnable", () => {
  test("never starts a head that is in flight, blocked, not due, or kept by a fault; keeps the order of the rest", () => {
    fc.assert(
      fc.property(anyHeads, anyLimits, anyStarts, (heads, limits, starts) => {
        const selected = selectRunnable(heads, limits, starts, T0);
        expect([...selected.start, ...selected.rest]).toEqual(heads.filter(isStartable));
      }),
      SEED,
    );
  });

  test("with what is in flight never passes the cap, and without a rate uses all of it", () => {
    fc.assert(
      fc.property(anyHeads, anyLimits, anyStarts, (heads, limits, starts) => {
        const inFlight = heads.filter(({ status }) => status === "processing").length;
        const { start } = selectRunnable(heads, limits, starts, T0);
        const room = Math.max(0, limits.concurrencyCap - inFlight);
        expect(start.length).toBeLessThanOrEqual(room);
        if (limits.ratePerSecond === null) {
          expect(start).toHaveLength(Math.min(room, heads.filter(isStartable).length));
        }
      }),
      SEED,
    );
  });

  test("never starts more in a second than the rate allows", () => {
    fc.assert(
      fc.property(anyHeads, fc.integer({ min: 1, max: 30 }), anyStarts, (heads, ratePerSecond, starts) => {
        const { start } = selectRunnable(heads, { concurrencyCap: 40, ratePerSecond, heldBytes: 0 }, starts, T0);
        const lately = starts.filter((at) => at > T0 - SECOND_MS).length;
        // What was more than the rate before this rate was set is not made more.
        if (start.length > 0) expect(lately + start.length).toBeLessThanOrEqual(ratePerSecond);
      }),
      SEED,
    );
  });

  test("when it says when to look again, that is later, and no head can start or be taken back before", () => {
    fc.assert(
      fc.property(anyHeads, anyLimits, anyStarts, (heads, limits, starts) => {
        const { start, wakeAt } = selectRunnable(heads, limits, starts, T0);
        if (wakeAt === null) return;
        expect(wakeAt).toBeGreaterThan(T0);
        const started = new Set(keysOf(start));
        const now = wakeAt - 1;
        const later = heads.map((one) => (started.has(one.laneKey) ? { ...one, status: "processing" as const } : one));
        const taken = [...starts, ...start.map(() => T0)];
        expect(selectRunnable(later, limits, taken, now).start).toEqual([]);
        for (const { status, lockedUntil } of heads) {
          if (status !== "processing" || lockedUntil === null) continue;
          expect(wakeAt).toBeLessThanOrEqual(Math.max(lockedUntil, T0 + LEASE_CHECK_MS));
        }
      }),
      SEED,
    );
  });

  test("says null only when nothing but a wake or the end of a request can change anything", () => {
    fc.assert(
      fc.property(anyHeads, anyLimits, anyStarts, (heads, limits, starts) => {
        const { rest, wakeAt } = selectRunnable(heads, limits, starts, T0);
        if (wakeAt !== null) return;
        const waiting = heads.filter((one) => one.status === "pending" && !one.blocked && !isStartable(one));
        expect(waiting).toEqual([]);
        expect(heads.filter(({ status, lockedUntil }) => status === "processing" && lockedUntil !== null)).toEqual([]);
        if (rest.length > 0) expect(limits.concurrencyCap).toBeLessThanOrEqual(heads.length);
      }),
      SEED,
    );
  });

  test("fills the cap in order; the rest waits for the end of a request, without an alarm", () => {
    const heads = ["a", "b", "c", "d"].map((key) => head(key));
    const selected = selectRunnable(heads, { concurrencyCap: 3, ratePerSecond: null, heldBytes: 0 }, [], T0);
    expect(keysOf(selected.start)).toEqual(["a", "b", "c"]);
    expect(keysOf(selected.rest)).toEqual(["d"]);
    expect(selected.wakeAt).toBeNull();
  });

  test("a head that somebody else has in flight takes its share of the cap", () => {
    const heads = [head("a", { status: "processing", lockedUntil: T0 + 45_000 }), head("b"), head("c")];
    const selected = selectRunnable(heads, { concurrencyCap: 2, ratePerSecond: null, heldBytes: 0 }, [], T0);
    expect(keysOf(selected.start)).toEqual(["b"]);
  });

  test.each([
    ["at its lease's end", 700, 700],
    ["before long, since it may end without a word", 45_000, LEASE_CHECK_MS],
  ])("what somebody else has in flight is looked at %s", (_when, leaseMs, after) => {
    const heads = [head("a", { status: "processing", lockedUntil: T0 + leaseMs })];
    expect(selectRunnable(heads, free, [], T0).wakeAt).toBe(T0 + after);
  });

  test("what is in flight from here is not looked at: its end tells", () => {
    const heads = [head("a", { status: "processing", lockedUntil: null })];
    expect(selectRunnable(heads, free, [], T0).wakeAt).toBeNull();
  });

  test("a lease that ended and cannot be taken back yet is looked at again before long, not at once", () => {
    const heads = [head("a", { status: "processing", lockedUntil: T0 - 1 })];
    expect(selectRunnable(heads, free, [], T0).wakeAt).toBe(T0 + LEASE_CHECK_MS);
  });

  test.each<[string, Partial<LaneHead>, number | null]>([
    ["is due later", { nextAttemptAt: T0 + 700 }, T0 + 700],
    ["is kept by a fault", { notBefore: T0 + 900 }, T0 + 900],
    ["is due later than its fault is over", { nextAttemptAt: T0 + 700, notBefore: T0 + 300 }, T0 + 700],
    ["is blocked", { blocked: true, nextAttemptAt: T0 + 700 }, null],
  ])("a head that %s holds up no other", (_why, over, wakeAt) => {
    const selected = selectRunnable([head("a", over), head("b")], free, [], T0);
    expect(keysOf(selected.start)).toEqual(["b"]);
    expect(selected.rest).toEqual([]);
    expect(selected.wakeAt).toBe(wakeAt);
  });

  test("a head is due in the very millisecond it was promised for", () => {
    const at = { nextAttemptAt: T0, notBefore: T0 };
    expect(selectRunnable([head("a", at)], free, [], T0).start).toHaveLength(1);
    expect(selectRunnable([head("a", at)], free, [], T0 - 1)).toMatchObject({ start: [], wakeAt: T0 });
  });

  test("under a rate the others wait for their turn, and the lane wakes for the next", () => {
    const heads = ["a", "b", "c"].map((key) => head(key));
    const selected = selectRunnable(heads, { concurrencyCap: 9, ratePerSecond: 10, heldBytes: 0 }, [], T0);
    expect(keysOf(selected.start)).toEqual(["a"]);
    expect(keysOf(selected.rest)).toEqual(["b", "c"]);
    expect(selected.wakeAt).toBe(T0 + 80);
  });
});

describe("memory", () => {
  const MIB = 1024 * 1024;
  const sizes = fc.array(fc.integer({ min: 1, max: 12 * MIB }), { maxLength: 40 });

  test("what is started stays within the budget with what is held, in order, and something always goes", () => {
    fc.assert(
      fc.property(sizes, fc.integer({ min: 0, max: 40 * MIB }), (bytes, heldBytes) => {
        const heads = bytes.map((payloadBytes, n) => head(`k${n}`, { payloadBytes }));
        const { start, rest } = selectRunnable(heads, { concurrencyCap: 100, ratePerSecond: null, heldBytes }, [], T0);
        const startedBytes = start.reduce((sum, { payloadBytes }) => sum + payloadBytes, 0);
        if (start.length > 1 || heldBytes > 0) {
          expect(startedBytes === 0 || heldBytes + startedBytes <= MAX_HELD_BYTES).toBe(true);
        }
        if (heldBytes === 0 && heads.length > 0) expect(start.length).toBeGreaterThan(0);
        expect([...start, ...rest]).toEqual(heads);
      }),
      SEED,
    );
  });

  test("a request that is larger than the budget goes alone", () => {
    const heads = [head("a", { payloadBytes: 2 * MAX_HELD_BYTES }), head("b")];
    expect(keysOf(selectRunnable(heads, free, [], T0).start)).toEqual(["a"]);
  });

  test("a key holds a payload, the one prepared behind it, and what is read ahead of small ones", () => {
    const [mib, kib] = [1024 * 1024, 1024];
    expect(peakPayloadBytes([5])).toBe(5);
    expect(peakPayloadBytes([mib, 7 * mib, 3 * mib, 2 * mib])).toBe(10 * mib);
    expect(peakPayloadBytes([9 * mib, mib, mib])).toBe(10 * mib);
    expect(peakPayloadBytes([kib, 2 * kib, kib])).toBe(3 * kib + 3 * kib);
    expect(peakPayloadBytes(Array.from({ length: 64 }, () => 8 * kib))).toBe(16 * kib + READ_AHEAD_BYTES);
  });
});

describe("capacityOf", () => {
  test.each([
    ["strict", null, 1],
    ["strict", 9, 1],
    ["keyed", null, 16],
    ["keyed", 9, 9],
    ["unordered", 100, 100],
  ] as const)("%s with a cap of %s: %i", (orderingMode, concurrencyCap, capacity) => {
    expect(capacityOf({ orderingMode, concurrencyCap })).toBe(capacity);
  });
});

describe("isAsClaimed", () => {
  const settings = { revision: 3, laneGeneration: 1, pausedAt: null, disabledAt: null, deletedAt: null };
  const claim = { revision: 3, generation: 1 };

  test("while nothing has changed a claim stands", () => {
    expect(isAsClaimed(settings, claim)).toBe(true);
  });

  test.each([
    ["an endpoint that is gone", null],
    ["another revision", { ...settings, revision: 4 }],
    ["another object's lane", { ...settings, laneGeneration: 2 }],
    ["a pause", { ...settings, pausedAt: T0 }],
    ["a disabled endpoint", { ...settings, disabledAt: T0 }],
    ["a deleted endpoint", { ...settings, deletedAt: T0 }],
  ])("%s ends it", (_what, changed) => {
    expect(isAsClaimed(changed, claim)).toBe(false);
  });
});

describe("routeOf", () => {
  const plain = {
    orderingMode: "unordered",
    concurrencyCap: null,
    rateLimitPerSecond: null,
    timeoutMs: 15_000,
    quarantinedAt: null,
  } as const;
  test.each<[string, Partial<Parameters<typeof routeOf>[0]>, "queue" | "lane"]>([
    ["nothing", {}, "queue"],
    ["strict order", { orderingMode: "strict" }, "lane"],
    ["order by key", { orderingMode: "keyed" }, "lane"],
    ["a cap", { concurrencyCap: 1 }, "lane"],
    ["a rate", { rateLimitPerSecond: 1 }, "lane"],
    ["the longest timeout of a queue", { timeoutMs: 20_000 }, "queue"],
    ["a longer timeout", { timeoutMs: 20_001 }, "lane"],
    ["nothing, and is in quarantine", { quarantinedAt: T0 }, "lane"],
  ])("an endpoint that asks for %s", (_what, over, route) => {
    expect(routeOf({ ...plain, ...over })).toBe(route);
  });
});
