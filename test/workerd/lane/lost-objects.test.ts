import { expect, test } from "vitest";
import type { LaneDeps } from "../../../src/app/lane/lane-state.ts";
import { brokenPromises, createLaneFixture, drain, type Lane, type LaneFixture } from "./support.ts";

const QUICK = { delays_seconds: [1], jitter: 0 };
const STEPS = ["loadLane", "getPayload", "claimHead", "send", "closeAndClaim", "closeAttempts", "endHead"] as const;

/** Dependencies that go silent for good at the n-th step: before it takes effect, or before its answer comes. */
function dyingAt(n: number, when: "before" | "after", onDeath: () => void) {
  let steps = 0;
  let isDead = false;
  const never = new Promise<never>(() => {});
  return (deps: LaneDeps): LaneDeps => {
    const dying = Object.fromEntries(
      STEPS.map((step) => [
        step,
        async (...input: never[]) => {
          if (isDead) return never;
          const act = deps[step] as (...input: never[]) => Promise<unknown>;
          if (++steps !== n) return act(...input);
          isDead = true;
          if (when === "after") await act(...input);
          onDeath();
          return never;
        },
      ]),
    );
    return { ...deps, ...dying };
  };
}

/** Runs a lane that dies at its n-th step, and others after it until all is delivered. False when it outlived them all. */
async function runWithDeath(fixture: LaneFixture, n: number, when: "before" | "after"): Promise<boolean> {
  let die!: () => void;
  const death = new Promise<"died">((resolve) => (die = () => resolve("died")));
  const dying = fixture.createLane("dying", 0, dyingAt(n, when, die));
  const wake = async (lane: Lane) => {
    const wakeAt = await lane.run();
    fixture.forward(Math.max(0, (wakeAt ?? 0) - fixture.now()) + 1);
    return "lived" as const;
  };
  while ((await fixture.openCount()) > 0) {
    if ((await Promise.race([death, wake(dying)])) === "died") {
      const heir = fixture.createLane("heir");
      await drain(fixture, () => [heir]);
      return true;
    }
  }
  return false;
}

test.each(["before", "after"] as const)(
  "an object lost at any step, %s it took effect, costs time and one attempt at most, never order or a delivery",
  async (when) => {
    const names = ["k/0", "k/1", "k/2"];
    let n = 0;
    for (let died = true; died;) {
      const fixture = await createLaneFixture({ retry_policy: QUICK });
      fixture.answer = ({ name, attempt }) =>
        new Response(null, { status: name === "k/1" && attempt === 1 ? 503 : 200 });
      await fixture.publishAll(names);
      died = await runWithDeath(fixture, ++n, when);
      const where = `lost at step ${n}`;
      expect(brokenPromises(fixture.sent, names), where).toEqual([]);
      expect(fixture.sent.length, where).toBeLessThanOrEqual(died ? 5 : 4);
      for (const row of await fixture.rows()) {
        // The second fails once, and the lost object's attempt may have been in vain.
        expect(row, where).toMatchObject({ status: "succeeded" });
        expect(row["attempt_count"], where).toBeLessThanOrEqual((row["name"] === "k/1" ? 2 : 1) + Number(died));
      }
    }
    // One load, and of each delivery a payload, a request and its end, at least.
    expect(n).toBeGreaterThan(10);
  },
  60_000,
);

test("a lease of a lost object is over before another makes the request again, and the lost attempt is on record", async () => {
  const fixture = await createLaneFixture();
  const [id] = await fixture.publishAll(["k/0"]);
  const lost = fixture.createLane("lost", 0, (deps) => ({ ...deps, send: () => new Promise(() => {}) }));
  void lost.run();
  await expect.poll(async () => (await fixture.rows())[0]!["status"]).toBe("processing");
  const claimedAt = (await fixture.rows())[0]!["last_attempt_at"];
  const heir = fixture.createLane("heir");
  await drain(fixture, () => [heir]);
  expect(fixture.sent).toMatchObject([{ name: "k/0", attempt: 2 }]);
  expect(fixture.sent[0]!.startedAt).toBeGreaterThanOrEqual(claimedAt + 45_000);
  const delivery = (await fixture.tenant.api.get(`/v1/deliveries/${id}`)).body;
  expect(delivery).toMatchObject({ status: "succeeded", attempt_count: 2 });
  expect(delivery.attempts.map((attempt: any) => attempt.error_class).toSorted()).toEqual(["abandoned", null]);
});

test("an object that only seemed lost cannot spoil what its heir has done: its late success changes nothing", async () => {
  const fixture = await createLaneFixture();
  const names = ["k/0", "k/1"];
  await fixture.publishAll(names);
  let answerSlow!: (response: Response) => void;
  fixture.answer = ({ by }) =>
    by === "slow" ? new Promise<Response>((resolve) => (answerSlow = resolve)) : new Response("ok");
  const slow = fixture.createLane("slow");
  const running = slow.run();
  await expect.poll(() => fixture.sent.length).toBe(1);
  const heir = fixture.createLane("heir");
  fixture.forward(46_000);
  await drain(fixture, () => [heir]);
  const before = await fixture.rows();
  answerSlow(new Response("ok"));
  await running;
  const after = await fixture.rows();
  expect(after.map(({ status, attempt_count, terminal_at }) => [status, attempt_count, terminal_at])).toEqual(
    before.map(({ status, attempt_count, terminal_at }) => [status, attempt_count, terminal_at]),
  );
  expect(fixture.sent.map(({ by, name }) => `${by} ${name}`)).toEqual(["slow k/0", "heir k/0", "heir k/1"]);
});

test("a wake that comes while a lane of many keys is walked is not lost, wherever the walk is", async () => {
  const fixture = await createLaneFixture({
    ordering_mode: "keyed",
    retry_policy: { delays_seconds: [3_600], jitter: 0 },
  });
  fixture.answer = ({ name }) => new Response(null, { status: name === "a/0" ? 200 : 503 });
  await fixture.publishAll(Array.from({ length: 200 }, (_, n) => `k${String(n).padStart(3, "0")}/0`));
  let isArmed = false;
  const lane = fixture.createLane("a", 0, (deps) => ({
    ...deps,
    async loadLane(...input) {
      const view = await deps.loadLane(...input);
      if (isArmed && input[2] !== "") {
        isArmed = false;
        await fixture.publishAll(["a/0"]);
        void deps.pumpAgain();
      }
      return view;
    },
  }));
  const isSent = (name: string) => fixture.sent.some((one) => one.name === name);
  let wakeAt = (await lane.run())!;
  for (let i = 0; i < 50 && wakeAt < fixture.now() + 60_000; i++) {
    fixture.forward(wakeAt - fixture.now() + 1);
    wakeAt = (await lane.run())!;
  }
  expect(fixture.sent).toHaveLength(200);
  isArmed = true;
  fixture.forward(5_000);
  wakeAt = (await lane.run())!;
  expect(isArmed).toBe(false);
  if (!isSent("a/0")) {
    expect(wakeAt - fixture.now()).toBeLessThan(5_000);
    fixture.forward(wakeAt - fixture.now() + 1);
    await lane.run();
  }
  expect(isSent("a/0")).toBe(true);
});
