import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createCountKeeper, type CountKeeper, type KeptCounts } from "../../../src/app/metrics/keep-counts.ts";
import { createTally, type Tally } from "../../../src/app/metrics/tally.ts";

/** A watchdog's disk, clock and timers, over which one keeper after the other may run. */
function createHost() {
  const host = {
    now: 1_000_000,
    disk: undefined as KeptCounts | undefined,
    writes: [] as number[],
    timers: [] as { at: number; work: () => void }[],
    failing: false,
    create(): CountKeeper {
      return createCountKeeper({
        now: () => host.now,
        read: async () => structuredClone(host.disk),
        async write(kept) {
          if (host.failing) throw new Error("no disk");
          host.disk = structuredClone(kept);
          host.writes.push(host.now);
        },
        later: (delayMs, work) => void host.timers.push({ at: host.now + delayMs, work }),
        logFault: () => {},
      });
    },
    async pass(ms: number) {
      host.now += ms;
      const due = host.timers.filter(({ at }) => at <= host.now);
      host.timers = host.timers.filter(({ at }) => at > host.now);
      for (const { work } of due) work();
      await new Promise((resolve) => setTimeout(resolve));
    },
  };
  return host;
}

async function offer(keeper: CountKeeper, isolate: string, tally: Tally, isAnswerLost = false): Promise<void> {
  const upTo = await keeper.take(isolate, structuredClone(tally.offer()));
  if (!isAnswerLost) tally.confirm(upTo);
}

describe("what isolates have counted", () => {
  test("is in the totals once, however often answers are lost and watchdogs die, as long as the isolates live", async () => {
    const step = fc.record({
      isolate: fc.nat(2),
      counts: fc.nat(3),
      what: fc.constantFrom("offer", "offer", "lost", "crash", "wait"),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const host = createHost();
        let keeper = host.create();
        const tallies = [createTally(), createTally(), createTally()];
        let counted = 0;
        let seen = 0;
        for (const { isolate, counts, what } of steps) {
          const tally = tallies[isolate]!;
          if (counts > 0) tally.add({ a: counts });
          counted += counts;
          if (what === "offer" || what === "lost") await offer(keeper, `i${isolate}`, tally, what === "lost");
          if (what === "wait") await host.pass(7_000);
          if (what === "crash") {
            host.timers = [];
            keeper = host.create();
          }
          const now = (await keeper.read()).totals["a"] ?? 0;
          // A counter that falls looks like one that began anew.
          expect(now).toBeGreaterThanOrEqual(seen);
          expect(now).toBeLessThanOrEqual(counted);
          seen = now;
        }
        for (const [i, tally] of tallies.entries()) await offer(keeper, `i${i}`, tally);
        expect((await keeper.read()).totals["a"] ?? 0).toBe(counted);
      }),
      { numRuns: 300 },
    );
  });

  test("is written at once after a pause, and at most once in ten seconds then, without being asked for", async () => {
    const host = createHost();
    const keeper = host.create();
    const tallies = Array.from({ length: 50 }, createTally);
    for (let second = 0; second < 30; second++) {
      for (const [i, tally] of tallies.entries()) {
        tally.add({ a: 1 });
        await offer(keeper, `i${i}`, tally);
      }
      await host.pass(1_000);
    }
    await host.pass(10_000);
    expect(host.disk!.totals["a"]).toBe(1_500);
    const gaps = host.writes.slice(1).map((at, i) => at - host.writes[i]!);
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(10_000);
    expect(host.writes.length).toBe(4);
  });

  test("of those who come again is kept without a timer, which would keep the object awake", async () => {
    const host = createHost();
    const keeper = host.create();
    const [one, two] = [createTally(), createTally()];
    one.add({ a: 1 });
    await offer(keeper, "one", one);
    two.add({ a: 1 });
    expect(await keeper.take("two", two.offer(), true)).toBe(0);
    expect(host.timers).toEqual([]);
    host.now += 10_000;
    two.confirm(await keeper.take("two", two.offer(), false));
    expect(two.hasMore()).toBe(false);
    expect(host.disk!.totals).toEqual({ a: 2 });
  });

  test("that is taken and not written yet is not confirmed, and is offered again", async () => {
    const host = createHost();
    const keeper = host.create();
    const [one, two] = [createTally(), createTally()];
    one.add({ a: 1 });
    await offer(keeper, "one", one);
    expect(one.hasMore()).toBe(false);
    two.add({ a: 1 });
    await offer(keeper, "two", two);
    expect(two.hasMore()).toBe(true);
    const next = host.create();
    host.now += 10_000;
    await offer(next, "two", two);
    expect(two.hasMore()).toBe(false);
    expect((await next.read()).totals).toEqual({ a: 2 });
  });

  test("is not lost where the disk refuses", async () => {
    const host = createHost();
    const keeper = host.create();
    const tally = createTally();
    tally.add({ a: 1 });
    host.failing = true;
    await expect(offer(keeper, "one", tally)).rejects.toThrow("no disk");
    host.failing = false;
    host.now += 10_000;
    await offer(keeper, "one", tally);
    expect(host.disk!.totals).toEqual({ a: 1 });
    expect(tally.hasMore()).toBe(false);
  });

  test("takes a bounded memory in an isolate that nobody answers", () => {
    const tally = createTally();
    for (let n = 0; n < 1_000; n++) {
      tally.add({ a: 1 });
      tally.offer();
    }
    expect(tally.offer().length).toBe(20);
    tally.confirm(20);
    expect(tally.offer()).toEqual([{ number: 21, counts: { a: 980 } }]);
  });
});

test("isolates that are not heard of for a day are forgotten, and their counts are not", async () => {
  const host = createHost();
  const keeper = host.create();
  const old = createTally();
  old.add({ a: 1 });
  await offer(keeper, "old", old);
  host.now += 24 * 3_600_000 + 1;
  const young = createTally();
  young.add({ a: 1 });
  await offer(keeper, "young", young);
  expect(Object.keys(host.disk!.isolates)).toEqual(["young"]);
  expect(host.disk!.totals).toEqual({ a: 2 });
});

test("a tick is on disk with the next write", async () => {
  const host = createHost();
  const keeper = host.create();
  await keeper.ticked();
  host.now += 5_000;
  await keeper.ticked();
  expect(host.disk!.tickedAt).toBe(1_000_000);
  expect(await host.create().read()).toMatchObject({ tickedAt: 1_000_000 });
  expect(await keeper.read()).toMatchObject({ tickedAt: 1_005_000 });
  expect(host.disk!.tickedAt).toBe(1_005_000);
});
