import { expect, test } from "vitest";
import { createLaneState, type LaneDeps } from "../../../src/app/lane/lane-state.ts";
import { createActLedger } from "../../../src/storage/ledger/act.ts";
import { createClock } from "./clock.ts";
import { cancelAll, createLaneFixture } from "./support.ts";

test("a lane that is moved keeps its rate", async () => {
  const fixture = await createLaneFixture({ ordering_mode: "unordered", rate_limit_per_second: 4 });
  await fixture.publishAll(Array.from({ length: 30 }, (_, n) => `/${n}`));
  const clock = createClock(fixture.now());
  const times: number[] = [];
  const timed = (deps: LaneDeps) =>
    clock.of({ ...deps, send: (request) => (times.push(clock.now()), deps.send(request)) });
  const open = Promise.withResolvers<void>();
  const former = fixture.createLane("former", 0, (deps) => {
    const { claimHead, ...others } = timed(deps);
    return { ...others, claimHead: (...input) => open.promise.then(() => claimHead(...input)) };
  });
  await clock.run(2_500, () => former.deps.pumpAgain());
  expect(times).toEqual([]);
  open.resolve();
  while (times.length === 0) await clock.run(10);
  await createActLedger(fixture.db).moveLane(fixture.tenant.id, fixture.endpointId);
  const latter = fixture.createLane("latter", 1, timed);
  // As a new object has it: the past second is full.
  latter.state.pace = createLaneState(latter.state, clock.now()).pace;
  await clock.run(3_500, () => latter.deps.pumpAgain());
  await cancelAll(fixture);
  expect(new Set(fixture.sent.map(({ by }) => by))).toEqual(new Set(["former", "latter"]));
  const most = Math.max(...times.map((from) => times.filter((at) => at >= from && at < from + 1_000).length));
  expect(most, "requests in one second").toBe(4);
});
