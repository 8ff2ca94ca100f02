import { expect, test } from "vitest";
import { composeLane } from "../../../src/compose.ts";
import { countingEnv, createCost } from "../support/counting.ts";
import { createTestContext } from "../support/worker.ts";
import { cancelAll, createLaneFixture, inFlightOf, withoutLanes } from "./support.ts";

test.each([1, 16])(
  "what a lost object had under way, %i of them behind many keys that are due, does not stop a lane for ever",
  async (cap) => {
    const fixture = await createLaneFixture({ ordering_mode: "keyed", concurrency_cap: cap });
    await fixture.publishAll(Array.from({ length: cap }, (_, n) => `z${n}/0`));
    const lost = fixture.createLane("lost", 0, (deps) => ({ ...deps, send: () => new Promise(() => {}) }));
    void lost.run();
    await expect.poll(async () => (await inFlightOf(fixture)).length).toBe(cap);
    // The object dies; by then others wait, whose keys come first.
    await fixture.publishAll(Array.from({ length: 64 }, (_, n) => `a${String(n).padStart(2, "0")}/0`));
    const heir = fixture.createLane("heir");
    const startedAt = fixture.now();
    while ((await fixture.openCount()) > 0 && fixture.now() - startedAt < 10 * 60_000) {
      const wakeAt = await heir.run();
      fixture.forward(Math.max(0, (wakeAt ?? 0) - fixture.now()) + 1);
    }
    const { length } = fixture.sent;
    await cancelAll(fixture);
    expect(length, "requests in ten minutes, of leases of 45 seconds").toBe(64 + cap);
  },
  120_000,
);

test("a receiver's outage and a lost object together do not stop an unordered lane with a cap for ever", async () => {
  const fixture = await createLaneFixture({
    ordering_mode: "unordered",
    concurrency_cap: 2,
    retry_policy: { delays_seconds: [30], jitter: 0 },
  });
  // Sixty-four events meet an outage, and back off; two more come, and are under way when the object dies.
  let isAway = true;
  fixture.answer = () => new Response(null, { status: isAway ? 503 : 200 });
  await fixture.publishAll(Array.from({ length: 64 }, (_, n) => `/${n}`));
  const first = fixture.createLane("first");
  while (fixture.sent.length < 64) await first.run();
  await fixture.publishAll(["/64", "/65"]);
  const lost = fixture.createLane("lost", 0, (deps) => ({ ...deps, send: () => new Promise(() => {}) }));
  void lost.run();
  await expect.poll(async () => (await inFlightOf(fixture)).length).toBe(2);
  // The outage ends. Nothing stands in the way of anything.
  isAway = false;
  fixture.forward(31_000);
  const heir = fixture.createLane("heir");
  const startedAt = fixture.now();
  while ((await fixture.openCount()) > 0 && fixture.now() - startedAt < 10 * 60_000) {
    const wakeAt = await heir.run();
    fixture.forward(Math.max(0, (wakeAt ?? 0) - fixture.now()) + 1);
  }
  const open = await fixture.openCount();
  await cancelAll(fixture);
  expect(open, "still open after ten minutes").toBe(0);
});

test("while others have requests under way the whole lane is not read every second", async () => {
  const reads: number[] = [];
  for (const count of [50, 350]) {
    const fixture = await createLaneFixture({ ordering_mode: "unordered", concurrency_cap: 1 });
    const ids = await fixture.publishAll(Array.from({ length: count }, (_, n) => `/${n}`));
    const lost = fixture.createLane("lost", 0, (deps) => ({ ...deps, send: () => new Promise(() => {}) }));
    void lost.run();
    await expect.poll(async () => (await inFlightOf(fixture)).length).toBe(1);
    const cost = createCost();
    const counting = composeLane(
      countingEnv(withoutLanes, cost),
      createTestContext().context,
      fixture.tenant.shard,
      async () => {},
    );
    const heir = fixture.createLane("heir", 0, (deps) => ({ ...deps, listInFlight: counting.listInFlight }));
    for (let second = 0; second < 10; second++) {
      await heir.run();
      fixture.forward(1_001);
    }
    expect(ids).toHaveLength(count);
    reads.push(cost.rowsRead);
    await cancelAll(fixture);
  }
  // One walk each may be needed: three hundred rows more.
  expect(reads[1]! - reads[0]!, `rows read: ${reads.join()}`).toBeLessThan(900);
});

test("one lease that cannot be judged because the watchdog is away does not stop the other keys", async () => {
  const fixture = await createLaneFixture({ ordering_mode: "keyed" });
  await fixture.publishAll(["a/0"]);
  const lost = fixture.createLane("lost", 0, (deps) => ({ ...deps, send: () => new Promise(() => {}) }));
  void lost.run();
  await expect.poll(async () => (await inFlightOf(fixture)).length).toBe(1);
  fixture.forward(46_000);
  await fixture.publishAll(["b/0"]);
  const heir = fixture.createLane("heir", 0, (deps) => ({
    ...deps,
    reportsUntil: () => Promise.reject(new Error("overloaded")),
  }));
  for (let i = 0; i < 10; i++) {
    await heir.run();
    fixture.forward(5_000);
  }
  const names = fixture.sent.map(({ name }) => name);
  await cancelAll(fixture);
  expect(names).toEqual(["b/0"]);
});
