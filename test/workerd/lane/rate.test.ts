import { expect, test } from "vitest";
import { createLaneState } from "../../../src/app/lane/lane-state.ts";
import { createActLedger } from "../../../src/storage/ledger/act.ts";
import { cancelAll, createLaneFixture } from "./support.ts";

test("a lane that is moved keeps its rate", async () => {
  const fixture = await createLaneFixture({ ordering_mode: "unordered", rate_limit_per_second: 4 });
  await fixture.publishAll(Array.from({ length: 30 }, (_, n) => `/${n}`));
  const open = Promise.withResolvers<void>();
  const former = fixture.createLane("former", 0, (deps) => ({
    ...deps,
    sleep: (ms) => scheduler.wait(ms),
    async claimHead(...input) {
      await open.promise;
      return deps.claimHead(...input);
    },
  }));
  const stutterUntil = Date.now() + 2_500;
  while (Date.now() < stutterUntil) {
    await former.deps.pumpAgain();
    await scheduler.wait(50);
  }
  open.resolve();
  await expect.poll(() => fixture.sent.length).toBeGreaterThan(0);
  await createActLedger(fixture.db).moveLane(fixture.tenant.id, fixture.endpointId);
  const latter = fixture.createLane("latter", 1, (deps) => ({ ...deps, sleep: (ms) => scheduler.wait(ms) }));
  // As a new object has it: the past second is full.
  latter.state.pace = createLaneState(latter.state, fixture.now()).pace;
  const until = Date.now() + 2_500;
  while (Date.now() < until) {
    await latter.deps.pumpAgain();
    await scheduler.wait(20);
  }
  await scheduler.wait(1_000);
  const times = fixture.sent.map(({ startedAt }) => startedAt).toSorted((a, b) => a - b);
  await cancelAll(fixture);
  const most = Math.max(...times.map((from) => times.filter((at) => at >= from && at < from + 1_000).length));
  expect(most, "requests in one second").toBeLessThanOrEqual(4);
}, 20_000);
