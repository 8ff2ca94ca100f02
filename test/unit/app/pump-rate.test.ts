import { expect, test } from "vitest";
import type { LaneDeps } from "../../../src/app/lane/lane-state.ts";
import { laneScene } from "./support/lane.ts";

const SECOND_MS = 1_000;
const padded = (n: number) => String(n).padStart(4, "0");

/** Many keys of one event each, under a rate; every claim takes `claimMs`. */
function ratedScene(count: number, ratePerSecond: number, claimMs: (at: number) => number, over?: Partial<LaneDeps>) {
  const scene = laneScene({ orderingMode: "keyed", concurrencyCap: 100, ratePerSecond }, over);
  for (let n = 0; n < count; n++) scene.add(`k${padded(n)}`, [`e${n}`]);
  const { claimHead } = scene.deps;
  scene.deps.claimHead = async (...args) => {
    const isClaimed = await claimHead(...args);
    await scene.later(claimMs(scene.clock.now));
    return isClaimed;
  };
  return scene;
}

function answerFirstClaimLate(scene: ReturnType<typeof laneScene>, ms: number): void {
  const { claimHead } = scene.deps;
  let lateMs = ms;
  scene.deps.claimHead = async (...args) => {
    const isClaimed = await claimHead(...args);
    await scene.later(lateMs);
    lateMs = 0;
    return isClaimed;
  };
}

const mostInASecond = (times: number[]) =>
  Math.max(...times.map((at) => times.filter((other) => other >= at && other < at + SECOND_MS).length));

test.each([
  [10, 1_000, 30],
  [50, 1_000, 30],
  [200, 1_000, 30],
  [200, 1_000, 1],
])("%i a second: %i events take about as long as they must, with claims of %i ms", async (rate, count, claimMs) => {
  const scene = ratedScene(count, rate, () => claimMs);
  await scene.wake();
  await scene.runFor((count / rate) * SECOND_MS * 1.08 + 200);
  const times = scene.sent.map(({ at }) => at);
  expect(times).toHaveLength(count);
  expect(mostInASecond(times)).toBeLessThanOrEqual(rate);
});

test.each([4, 40, 200])(
  "at %i a second, however late the answers to its claims come, a request waits a tenth of a second behind its own",
  async (rate) => {
    const answeredAt = new Map<string, number>();
    // All claims of two seconds are answered at once.
    const scene = ratedScene(100, rate, (at) => Math.max(0, start + 2 * SECOND_MS - at));
    const start = scene.clock.now;
    const { claimHead } = scene.deps;
    scene.deps.claimHead = async (...args) => {
      const isClaimed = await claimHead(...args);
      answeredAt.set(args[0].eventId, scene.clock.now);
      return isClaimed;
    };
    await scene.wake();
    await scene.runFor(30 * SECOND_MS);
    expect(scene.sent).toHaveLength(100);
    const waits = scene.sent.map(({ name, at }) => at - answeredAt.get(`evt_${name}`)!);
    expect(Math.max(...waits)).toBeLessThanOrEqual(110);
    expect(mostInASecond(scene.sent.map(({ at }) => at))).toBeLessThanOrEqual(rate);
  },
);

test.each([
  ["was changed", { revision: 2 }, [1]],
  ["was paused", { pausedAt: 1 }, []],
  ["was moved", { laneGeneration: 2 }, []],
])(
  "a claim whose answer was late is not sent when the endpoint %s meanwhile, and does not wait for its lease",
  async (_what, change, attempts) => {
    const scene = laneScene();
    scene.add("", ["e0"]);
    const { claimHead } = scene.deps;
    let lateMs = 1_500;
    scene.deps.claimHead = async (...args) => {
      const isClaimed = await claimHead(...args);
      Object.assign(scene.settings, change);
      await scene.later(lateMs);
      lateMs = 0;
      return isClaimed;
    };
    await scene.wake();
    await scene.runFor(1_400);
    expect(scene.sent).toEqual([]);
    await scene.runFor(600);
    expect(scene.sent.map(({ attempt }) => attempt)).toEqual(attempts);
    expect(scene.row("e0").status).not.toBe("processing");
  },
);

test("a claim whose answer was late is sent when nothing has changed", async () => {
  const scene = ratedScene(1, 10, () => 1_500);
  await scene.wake();
  await scene.runFor(2 * SECOND_MS);
  expect(scene.sent).toMatchObject([{ attempt: 1 }]);
});

test("a request that left late since its claim was proved once more counts from when it left", async () => {
  const scene = ratedScene(2, 1, () => 0);
  const { loadSettings } = scene.deps;
  answerFirstClaimLate(scene, 1_500);
  scene.deps.loadSettings = async (...args) => {
    await scene.later(400);
    return loadSettings(...args);
  };
  await scene.wake();
  await scene.runFor(10 * SECOND_MS);
  const [first, second] = scene.sent.map(({ at }) => at);
  expect(scene.sent).toHaveLength(2);
  expect(second! - first!).toBeGreaterThanOrEqual(SECOND_MS);
});

test("what proves its claim once more does not leave beside one that has gone meanwhile, however long that takes", async () => {
  for (let askedMs = 100; askedMs < 4_000; askedMs += 60) {
    for (const claimMs of [0, 30]) {
      const scene = ratedScene(6, 1, () => claimMs);
      const { loadSettings } = scene.deps;
      answerFirstClaimLate(scene, 1_500);
      let asked = 0;
      scene.deps.loadSettings = async (...args) => {
        if (asked++ === 0) await scene.later(askedMs);
        return loadSettings(...args);
      };
      await scene.wake();
      await scene.runFor(30 * SECOND_MS);
      expect(asked).toBeGreaterThan(0);
      expect(new Set(scene.names()).size).toBe(6);
      const times = scene.sent.map(({ at }) => at);
      expect({ askedMs, claimMs, most: mostInASecond(times) }).toMatchObject({ most: 1 });
    }
  }
});

test("a claim whose answer took so long that the request could outlive its lease is not sent", async () => {
  const scene = laneScene();
  scene.add("", ["e0"]);
  answerFirstClaimLate(scene, 19 * SECOND_MS);
  await scene.wake();
  await scene.runFor(21 * SECOND_MS);
  expect(scene.sent).toMatchObject([{ attempt: 1 }]);
});

test("requests whose payload is late hold up neither the rate nor the claims of others", async () => {
  const scene = ratedScene(100, 10, () => 30);
  const { getPayload } = scene.deps;
  scene.deps.getPayload = async (ref, size) => {
    await scene.later(300);
    return getPayload(ref, size);
  };
  await scene.wake();
  await scene.runFor(11 * SECOND_MS);
  expect(scene.sent).toHaveLength(100);
});
