import { expect, test } from "vitest";
import { deliveryId } from "../../../src/core/ids.ts";
import { setCapacity } from "../../../src/app/lane/drain.ts";
import type { LaneSettings } from "../../../src/app/lane/lane-state.ts";
import { laneScene } from "./support/lane.ts";
import { T0 } from "./support/report.ts";

const HUNG: Partial<LaneSettings> = { orderingMode: "unordered", quarantinedAt: T0 - 60_000 };
const names = (count: number, from = 0) =>
  Array.from({ length: count }, (_, n) => `n${String(n + from).padStart(5, "0")}`);

type Scene = ReturnType<typeof laneScene>;

/** A backlog in the order of its acceptance, each with a lane key of its own. */
function addOwn(scene: Scene, wanted: string[], fields: Parameters<Scene["add"]>[2] = {}) {
  for (const name of wanted) scene.add(` evt_${name}`, [name], fields);
}

const hanging = () => ({ status: 0, tookMs: 15_000, hangs: true });

test("a receiver in quarantine gets one request at a time, each an untried one, with longer and longer pauses", async () => {
  const scene = laneScene(HUNG);
  scene.answer = hanging;
  addOwn(scene, names(20));
  await scene.wake();
  await scene.runFor(120_000);
  expect(scene.mostInFlight.total).toBe(1);
  expect(scene.sent).toEqual(scene.sent.map(({ at }, n) => ({ name: names(20)[n], attempt: 1, at })));
  const gaps = scene.sent.map(({ at }, n) => at - (scene.sent[n - 1]?.at ?? at)).slice(1);
  expect(gaps.map((gap) => gap - 15_000)).toEqual([1_000, 2_000, 4_000, 8_000, 15_000]);
  expect(scene.left).toEqual([]);
});

test("when it answers what waits is let through, doubling from one, and the endpoint goes back to its queue", async () => {
  const scene = laneScene(HUNG);
  scene.answer = () => ({ status: 503, tookMs: 1_000 });
  addOwn(scene, names(100));
  await scene.wake();
  await scene.runFor(20_000);
  const perRound = [...Map.groupBy(scene.sent, ({ at }) => at).values()].map((round) => round.length);
  // One by one the answers of a round make room for the next.
  expect(perRound.slice(0, 5)).toEqual([1, 2, 4, 8, 16]);
  expect(scene.left).toEqual([T0 + 5_000]);
  expect(scene.mostInFlight.total).toBe(16);
  expect(scene.faults).toEqual([]);
});

test("what was under way when the endpoint went back is rung for once it has failed: its lane does nothing for it any more", async () => {
  const scene = laneScene(HUNG);
  // One in ten of what is begun from the fourth second on is slow.
  scene.answer = ({ at, name }) => ({ status: 503, tookMs: at >= T0 + 4_000 && name.endsWith("0") ? 5_000 : 1_000 });
  addOwn(scene, names(100));
  await scene.wake();
  await scene.runFor(8_500);
  const { length } = scene.rung;
  await scene.runFor(3_000);
  expect(scene.left).toHaveLength(1);
  const slow = scene.sent.filter(({ at, name }) => at >= T0 + 4_000 && name.endsWith("0"));
  expect(slow.length).toBeGreaterThan(0);
  const ids = slow.map(({ name }) => deliveryId({ ...scene.row(name), replayNo: 0 }));
  expect(scene.rung).toEqual(expect.arrayContaining(ids.map((id) => `${id} 2`)));
  expect(scene.rung.length - length).toBe(slow.length);
});

test("one that hangs again in the middle of it is back at one", async () => {
  const scene = laneScene(HUNG);
  scene.answer = ({ at }) => (at < T0 + 3_000 ? { status: 200, tookMs: 1_000 } : hanging());
  addOwn(scene, names(100));
  await scene.wake();
  await scene.runFor(60_000);
  const begun = [...Map.groupBy(scene.sent, ({ at }) => at - T0)].map(([at, round]) => [at, round.length]);
  expect(begun).toEqual([
    [0, 1],
    [1_000, 2],
    [2_000, 4],
    [3_000, 8],
    [19_000, 1],
    [36_000, 1],
    [55_000, 1],
  ]);
  expect(scene.left).toEqual([]);
});

test("a short backlog that was answered ends it, whatever the answers said", async () => {
  const scene = laneScene(HUNG);
  scene.answer = ({ attempt }) => ({ status: attempt === 1 ? 410 : 200, tookMs: 10 });
  addOwn(scene, names(3));
  await scene.wake();
  await scene.runFor(10_000);
  expect(scene.left).toHaveLength(1);
});

test("an object that has forgotten how far the drain was begins at one again", async () => {
  const scene = laneScene(HUNG);
  scene.answer = () => ({ status: 200, tookMs: 1_000 });
  addOwn(scene, names(40));
  await scene.wake();
  await scene.runFor(2_500);
  expect(scene.state.drain).toMatchObject({ size: 4 });
  const other = laneScene(HUNG);
  addOwn(other, names(40));
  other.answer = () => ({ status: 200, tookMs: 1_000 });
  await other.wake();
  await other.settle();
  expect(other.sent).toHaveLength(1);
});

test("a later quarantine begins at one, whatever the one before had come to", () => {
  const { state, settings } = laneScene(HUNG);
  setCapacity(state, settings, T0);
  state.drain = { ...state.drain!, size: 8 };
  setCapacity(state, settings, T0 + 1_000);
  expect(state.capacity).toBe(8);
  setCapacity(state, { ...settings, quarantinedAt: T0 + 2_000 }, T0 + 2_000);
  expect(state.capacity).toBe(1);
  setCapacity(state, { ...settings, quarantinedAt: null }, T0 + 3_000);
  expect(state).toMatchObject({ capacity: 16, drain: null });
});

test("a wake while it rests, or has its probe out, reads no lane", async () => {
  const scene = laneScene(HUNG);
  scene.answer = hanging;
  addOwn(scene, names(20));
  await scene.wake();
  await scene.runFor(14_000);
  const { length } = scene.loads;
  for (let n = 0; n < 100; n++) await scene.wake(true);
  await scene.runFor(1_500);
  for (let n = 0; n < 100; n++) await scene.wake(true);
  expect(scene.loads).toHaveLength(length);
});

test("faults of the relay say nothing of the receiver", async () => {
  const scene = laneScene(HUNG, {
    send: async () => {
      throw new Error("no sender");
    },
  });
  addOwn(scene, names(3));
  await scene.wake();
  await scene.settle();
  expect(scene.state.drain).toMatchObject({ size: 1, misses: 0, notBefore: 0 });
});

test("where nothing orders them retries go behind all that was not tried, also what comes while they go", async () => {
  const scene = laneScene({ orderingMode: "unordered", concurrencyCap: 1 });
  // Each event fails once.
  scene.answer = ({ attempt }) => ({ status: attempt === 1 ? 500 : 200, tookMs: 100 });
  addOwn(scene, names(150));
  await scene.wake();
  await scene.runFor(20_400);
  expect(scene.sent.slice(0, 150).every(({ attempt }) => attempt === 1)).toBe(true);
  expect(scene.sent.slice(150).every(({ attempt }) => attempt === 2)).toBe(true);
  const before = scene.sent.length;
  expect(before).toBeGreaterThan(160);
  // The retries that were read are due, and wait for room.
  addOwn(scene, ["z1", "z2"]);
  await scene.wake(true);
  await scene.runFor(1_000);
  const [underway, ...after] = scene.names().slice(before - 1);
  expect(underway).toMatch(/^n/);
  expect(after.slice(0, 2)).toEqual(["z1", "z2"]);
  await scene.runFor(60_000);
  expect(scene.sent).toHaveLength(304);
});

test("a first attempt does not wait for the end of a walk over retries that are not due, nor for the pause after it", async () => {
  const scene = laneScene({ orderingMode: "unordered", concurrencyCap: 4 });
  for (const name of names(1_000))
    scene.add(`~ evt_${name}`, [name], { attemptCount: 1, nextAttemptAt: T0 + 3_600_000 });
  await scene.wake();
  await scene.settle();
  expect(scene.state.walkAgainAt).toBeGreaterThan(T0);
  const { length } = scene.loads;
  addOwn(scene, ["z"]);
  await scene.wake(true);
  await scene.settle();
  expect(scene.sent).toEqual([{ name: "z", attempt: 1, at: T0 }]);
  expect(scene.loads.length - length).toBeLessThan(3);
});

test("a lane of which nothing is left asks once for the end of its quarantine, and again only where that failed", async () => {
  const asked: number[] = [];
  let works = false;
  const scene = laneScene(HUNG, {
    leaveQuarantine: async () => {
      asked.push(scene.clock.now - T0);
      return works;
    },
  });
  await scene.wake();
  await scene.runFor(3_000);
  works = true;
  await scene.runFor(60_000);
  expect(asked).toEqual([0, 2_000, 4_000]);
  expect(scene.wakeAt()).toBeNull();
});

test("what is not due yet is tried at its time, where somebody else ended the quarantine and gave the endpoint a cap", async () => {
  const scene = laneScene(HUNG, {
    async leaveQuarantine() {
      const { settings } = scene;
      scene.settings = { ...settings, quarantinedAt: null, concurrencyCap: 2, revision: settings.revision + 1 };
      return true;
    },
  });
  addOwn(scene, names(3), { nextAttemptAt: T0 + 10_000 });
  setCapacity(scene.state, scene.settings, T0);
  scene.state.drain = { ...scene.state.drain!, size: 32 };
  await scene.wake();
  await scene.runFor(20_000);
  expect(scene.sent.map(({ at }) => at)).toEqual([T0 + 10_000, T0 + 10_000, T0 + 10_000]);
});
