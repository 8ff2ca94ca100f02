import { expect, test } from "vitest";
import type { LaneDeps } from "../../../src/app/lane/lane-state.ts";
import { recordAttempt } from "../../../src/app/deliver/record-attempt.ts";
import { createActLedger } from "../../../src/storage/ledger/act.ts";
import { brokenPromises, createLaneFixture, drain } from "./support.ts";

type Step = "claimHead" | "closeAndClaim" | "closeAttempts";

/** Lets a step's first `times` calls fail: refused, or done with their answers lost. */
function failing(step: Step, how: "refused" | "lost", times: number) {
  return (deps: LaneDeps): LaneDeps => {
    const act = deps[step] as (...input: never[]) => Promise<unknown>;
    const fail = async (...input: never[]) => {
      if (times-- <= 0) return act(...input);
      if (how === "lost") await act(...input);
      throw new Error(how);
    };
    return { ...deps, [step]: fail };
  };
}

const NAMES = ["k/0", "k/1", "k/2"];

test.each([
  ["claimHead", "refused"],
  ["claimHead", "lost"],
  ["closeAndClaim", "refused"],
  ["closeAndClaim", "lost"],
] as const)("when one answer to %s is %s nothing is sent twice, and nothing waits", async (step, how) => {
  const fixture = await createLaneFixture();
  await fixture.publishAll(NAMES);
  const lane = fixture.createLane("a", 0, failing(step, how, 1));
  // The clock goes no further than it does by itself.
  await lane.run();
  expect(await fixture.openCount()).toBe(0);
  expect(fixture.sent.map(({ name, attempt }) => `${name} ${attempt}`)).toEqual(["k/0 1", "k/1 1", "k/2 1"]);
});

test("when a close is refused for good, the report waits in its queue and the request is not made again", async () => {
  const fixture = await createLaneFixture();
  await fixture.publishAll(NAMES);
  const lane = fixture.createLane("a", 0, failing("closeAndClaim", "refused", Infinity));
  const wakeAt = await lane.run();
  expect(fixture.sent).toHaveLength(1);
  expect(fixture.reports).toMatchObject([{ lane: { generation: 0 }, wire: { status: 200 } }]);
  // The lane looks again before long, but nobody takes the request over before the lease ends.
  fixture.forward(wakeAt! - fixture.now());
  await lane.run();
  expect(fixture.sent).toHaveLength(1);
  const woken: unknown[] = [];
  await recordAttempt({ ...fixture.deps, wakeLane: (woke) => void woken.push(woke) }, fixture.reports[0]!);
  expect(woken).toMatchObject([{ tenantId: fixture.tenant.id, endpointId: fixture.endpointId, generation: 0 }]);
  const heir = fixture.createLane("b");
  await drain(fixture, () => [heir]);
  expect(fixture.sent.map(({ by, name }) => `${by} ${name}`)).toEqual(["a k/0", "b k/1", "b k/2"]);
});

test("a claim whose answers were all lost is an abandoned attempt, and its delivery the next to be attempted", async () => {
  const fixture = await createLaneFixture();
  const ids = await fixture.publishAll(NAMES);
  const lane = fixture.createLane("a", 0, failing("closeAndClaim", "lost", 2));
  await drain(fixture, () => [lane]);
  expect(brokenPromises(fixture.sent, NAMES)).toEqual([]);
  expect(fixture.sent.map(({ name, attempt }) => `${name} ${attempt}`)).toEqual(["k/0 1", "k/1 2", "k/2 1"]);
  const second = (await fixture.tenant.api.get(`/v1/deliveries/${ids[1]}`)).body;
  expect(second.attempts.map((attempt: any) => attempt.error_class).toSorted()).toEqual(["abandoned", null]);
});

test("a report that comes a second time, from its queue, does not stop a lane again that was told to go on", async () => {
  const fixture = await createLaneFixture({ on_exhausted: "block" });
  const [id] = await fixture.publishAll(["k/0", "k/1"]);
  fixture.answer = ({ name }) => new Response(null, { status: name === "k/0" ? 400 : 200 });
  const lane = fixture.createLane("a", 0, failing("closeAndClaim", "lost", 2));
  await lane.run();
  const blocked = (await fixture.tenant.api.get(`/v1/endpoints/${fixture.endpointId}/lane`)).body;
  expect(blocked).toMatchObject({ state: "blocked", heads: [{ delivery_id: id }] });
  const { eventId, endpointId, replayNo } = fixture.reports[0]!;
  expect(
    await createActLedger(fixture.db).skipHead(fixture.tenant.id, { eventId, endpointId, replayNo }, fixture.now()),
  ).toBe(true);
  await recordAttempt(fixture.deps, fixture.reports[0]!);
  const heir = fixture.createLane("b");
  await heir.run();
  expect(fixture.sent.map(({ name }) => name)).toEqual(["k/0", "k/1"]);
});
