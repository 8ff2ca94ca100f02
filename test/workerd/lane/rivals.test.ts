import { expect, test } from "vitest";
import type { LaneDeps } from "../../../src/app/lane/lane-state.ts";
import { recordAttempt } from "../../../src/app/deliver/record-attempt.ts";
import { createActLedger } from "../../../src/storage/ledger/act.ts";
import { createLaneLedger } from "../../../src/storage/ledger/lane.ts";
import { brokenPromises, createLaneFixture, createRandom, drain } from "./support.ts";

const QUICK = { delays_seconds: [1], jitter: 0, max_attempts: 4 };
const STEPS = ["loadLane", "getPayload", "claimHead", "closeAndClaim", "closeAttempts", "endHead"] as const;

/** Puts the steps of all lanes in a random order, and lets some be refused or lose their answers. */
function createChance(seed: number, faultShare: number) {
  const random = createRandom(seed);
  const dawdle = () => scheduler.wait(Math.floor(random() * 4));
  const wrap = (deps: LaneDeps): LaneDeps => ({
    ...deps,
    ...Object.fromEntries(
      STEPS.map((step) => [
        step,
        async (...input: never[]) => {
          const act = deps[step] as (...input: never[]) => Promise<unknown>;
          const luck = random();
          await dawdle();
          if (luck < faultShare / 2) throw new Error("refused");
          const result = await act(...input);
          await dawdle();
          if (luck < faultShare) throw new Error("the answer was lost");
          return result;
        },
      ]),
    ),
  });
  return { random, dawdle, wrap };
}

const keyed = (keys: number, each: number) =>
  Array.from({ length: keys * each }, (_, i) => `k${i % keys}/${Math.floor(i / keys)}`);

test.each([
  { mode: "strict", names: keyed(1, 12), faultShare: 0, seed: 11 },
  { mode: "strict", names: keyed(1, 12), faultShare: 0.15, seed: 12 },
  { mode: "keyed", names: keyed(5, 5), faultShare: 0, seed: 13 },
  { mode: "keyed", names: keyed(5, 5), faultShare: 0.15, seed: 14 },
])(
  "three objects of one $mode lane at once keep its order, a share of $faultShare of their steps failing",
  async ({ mode, names, faultShare, seed }) => {
    const { random, dawdle, wrap } = createChance(seed, faultShare);
    const fixture = await createLaneFixture({ ordering_mode: mode, retry_policy: QUICK });
    fixture.answer = async () => {
      const luck = random();
      await dawdle();
      return new Response(null, { status: luck < 0.7 ? 200 : luck < 0.9 ? 503 : 400 });
    };
    await fixture.publishAll(names);
    const lanes = ["a", "b", "c"].map((by) => {
      const looking = { looks: 0 };
      const lane = fixture.createLane(by, 0, (deps) => {
        const { loadLane, ...chancy } = wrap(deps);
        return { ...chancy, loadLane: (...input) => (looking.looks++, loadLane(...input)) };
      });
      return Object.assign(looking, lane);
    });
    for (let round = 0; (await fixture.openCount()) > 0; round++) {
      expect(round, "rounds").toBeLessThan(300);
      const wakes = await Promise.all(lanes.map((lane) => lane.run()));
      // What could not be closed comes back from its queue.
      for (const report of fixture.reports.splice(0)) await recordAttempt(fixture.deps, report);
      const wakeAt = Math.min(...wakes.map((at) => at ?? Infinity));
      if (wakeAt < Infinity) fixture.forward(Math.max(0, wakeAt - fixture.now()) + 1);
    }
    expect(brokenPromises(fixture.sent, names)).toEqual([]);
    // Each of them looked for work, or nothing was tried here.
    expect(lanes.map(({ looks }) => looks > 0)).toEqual([true, true, true]);
    // No request was made that is not on record, and none twice under one number.
    for (const { name, attempt_count, status } of await fixture.rows()) {
      const attempts = fixture.sent.filter((one) => one.name === name).map(({ attempt }) => attempt);
      expect(new Set(attempts).size, name).toBe(attempts.length);
      expect(attempts.length, name).toBeLessThanOrEqual(attempt_count);
      expect(["succeeded", "dead_letter"], name).toContain(status);
      if (faultShare === 0) expect(attempts, name).toEqual(Array.from({ length: attempt_count }, (_, i) => i + 1));
    }
  },
  60_000,
);

test("two objects of one capped lane make each request once", async () => {
  const { wrap, dawdle } = createChance(15, 0);
  const fixture = await createLaneFixture({ ordering_mode: "unordered", concurrency_cap: 4 });
  fixture.answer = async () => {
    await dawdle();
    return new Response("ok");
  };
  const names = Array.from({ length: 40 }, (_, n) => `/${n}`);
  await fixture.publishAll(names);
  const lanes = ["a", "b"].map((by) => fixture.createLane(by, 0, wrap));
  await Promise.all(lanes.map((lane) => lane.run()));
  await drain(fixture, () => lanes);
  expect(fixture.sent.map(({ name }) => name).toSorted()).toEqual(names.toSorted());
});

test("a lane that was moved away in the middle of a request ends that request, and starts no other", async () => {
  const fixture = await createLaneFixture();
  const names = ["k/0", "k/1", "k/2"];
  await fixture.publishAll(names);
  const former = fixture.createLane("former");
  const woken: number[] = [];
  former.deps.wakeLane = ({ generation }) => void woken.push(generation);
  fixture.answer = async ({ by }) => {
    if (by === "former") {
      await createActLedger(fixture.db).moveLane(fixture.tenant.id, fixture.endpointId);
      // The new object finds the head in flight, and waits for it.
      expect(await latter.run()).not.toBeNull();
      expect(fixture.sent).toHaveLength(1);
    }
    return new Response("ok");
  };
  const latter = fixture.createLane("latter", 1);
  await former.run();
  await former.run();
  expect(fixture.sent.map(({ by, name }) => `${by} ${name}`)).toEqual(["former k/0"]);
  expect(woken).toContain(1);
  await drain(fixture, () => [former, latter]);
  expect(fixture.sent.map(({ by, name }) => `${by} ${name}`)).toEqual(["former k/0", "latter k/1", "latter k/2"]);
  expect(brokenPromises(fixture.sent, names)).toEqual([]);
});

test("the ledger gives a former generation no claim, whatever else it knows", async () => {
  const fixture = await createLaneFixture();
  await fixture.publishAll(["k/0"]);
  await createActLedger(fixture.db).moveLane(fixture.tenant.id, fixture.endpointId);
  const [row] = await fixture.rows();
  const claim = {
    tenantId: fixture.tenant.id,
    eventId: row!["event_id"],
    endpointId: fixture.endpointId,
    replayNo: 0,
    attemptNumber: 1,
    token: "t",
    endpointRevision: 2,
    signingSecretIds: [],
    workerId: "w",
    relayRegion: null,
    leaseMs: 1_000,
  };
  const { claimHead } = createLaneLedger(fixture.db);
  expect(await claimHead(claim, 0, fixture.now())).toBe(false);
  expect(await claimHead(claim, 1, fixture.now())).toBe(true);
});
