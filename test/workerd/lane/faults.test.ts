import { expect, test } from "vitest";
import { cancelAll, createLaneFixture } from "./support.ts";

test("one call to a store that never comes back does not stop a lane for ever", async () => {
  const fixture = await createLaneFixture();
  await fixture.publishAll(["k/0"]);
  let calls = 0;
  const lane = fixture.createLane("a", 0, (deps) => ({
    ...deps,
    async within(ms, work) {
      const lateAt = fixture.now() + ms;
      const late = async (): Promise<never> => {
        while (fixture.now() < lateAt) await scheduler.wait(5);
        throw new Error("late");
      };
      return Promise.race([work, late()]);
    },
    getPayload: (...input) => (++calls === 1 ? new Promise(() => {}) : deps.getPayload(...input)),
  }));
  void lane.run();
  await expect.poll(() => calls).toBe(1);
  // Alarms and the watchdog's wakes, for an hour.
  for (let minute = 0; minute < 60; minute++) {
    fixture.forward(60_000);
    await lane.deps.pumpAgain();
    await scheduler.wait(10);
  }
  await scheduler.wait(100);
  const { length } = fixture.sent;
  await cancelAll(fixture);
  expect(length).toBe(1);
});

test("what an object remembers of faults does not outlive the deliveries", async () => {
  const fixture = await createLaneFixture({ ordering_mode: "unordered", concurrency_cap: 50 });
  await fixture.publishAll(Array.from({ length: 200 }, (_, n) => `/${n}`));
  const lane = fixture.createLane("a", 0, (deps) => ({ ...deps, getPayload: () => Promise.reject(new Error("away")) }));
  for (let i = 0; i < 10 && lane.state.faults.size < 200; i++) await lane.run();
  expect(lane.state.faults.size).toBe(200);
  await cancelAll(fixture);
  fixture.forward(3_600_000);
  await lane.run();
  expect(lane.state.faults.size).toBe(0);
});
