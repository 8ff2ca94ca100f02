import { expect, test } from "vitest";
import { deliveryId } from "../../../src/core/ids.ts";
import { laneScene } from "./support/lane.ts";
import { T0 } from "./support/report.ts";

const SECOND_MS = 1_000;

test("a call while a lane is full makes it look at the endpoint, once in five seconds", async () => {
  const scene = laneScene();
  scene.add("", ["e0"]);
  scene.answer = () => ({ status: 200, tookMs: 12 * SECOND_MS });
  let looks = 0;
  const { loadSettings } = scene.deps;
  scene.deps.loadSettings = (...input) => {
    looks++;
    return loadSettings(...input);
  };
  await scene.wake();
  for (let n = 0; n < 100; n++) {
    await scene.wake();
    await scene.runFor(100);
  }
  expect(looks).toBeLessThanOrEqual(3);
  expect(scene.loads).toHaveLength(1);
});

test("a higher cap is seen within five seconds while all places are taken, by itself or by others", async () => {
  for (const isElsewhere of [false, true]) {
    const scene = laneScene({ orderingMode: "keyed", concurrencyCap: 1 });
    scene.add("a", ["a0"]);
    scene.add("b", ["b0"]);
    const lease = { status: "processing" as const, token: "another", attemptCount: 1, lockedUntil: T0 + 45_000 };
    if (isElsewhere) Object.assign(scene.row("a0"), lease);
    scene.answer = () => ({ status: 200, tookMs: 30 * SECOND_MS });
    await scene.wake();
    await scene.runFor(100);
    await scene.wake();
    await scene.runFor(100);
    Object.assign(scene.settings, { concurrencyCap: 2, revision: 2 });
    await scene.wake();
    await scene.runFor(6 * SECOND_MS);
    expect(scene.names()).toEqual(isElsewhere ? ["b0"] : ["a0", "b0"]);
  }
});

test("what others had under way in another mode does not stop a lane that has become strict", async () => {
  const scene = laneScene({ orderingMode: "keyed" });
  scene.add("a", ["a0"]);
  scene.add("b", ["b0"]);
  const lease = { status: "processing" as const, token: "another", attemptCount: 1, lockedUntil: T0 + 45_000 };
  Object.assign(scene.row("a0"), lease);
  await scene.wake();
  await scene.runFor(100);
  // One lane now, and what was under way has ended.
  Object.assign(scene.settings, { orderingMode: "strict", revision: 2 });
  Object.assign(scene.row("a0"), { status: "succeeded", token: null, lockedUntil: null, laneKey: "" });
  scene.add("", ["c0", "c1"]);
  await scene.wake();
  await scene.runFor(10 * SECOND_MS);
  expect(scene.names()).toEqual(["b0", "c0", "c1"]);
});

test("while the lane is the endpoint's, nobody rings at queues for it", async () => {
  const scene = laneScene({ orderingMode: "keyed" });
  scene.add("a", ["a0"]);
  scene.add("b", ["b0"]);
  scene.answer = ({ attempt }) => ({ status: attempt === 1 ? 503 : 200, tookMs: 100 });
  await scene.wake();
  await scene.runFor(60 * SECOND_MS);
  expect(scene.names()).toHaveLength(4);
  expect(scene.rung).toEqual([]);
});

test("what is given back because queues took the endpoint over while it was claimed is rung for there", async () => {
  const scene = laneScene({ orderingMode: "unordered", concurrencyCap: 2 });
  scene.add(" e0", ["e0"]);
  const { claimHead } = scene.deps;
  scene.deps.claimHead = async (...input) => {
    const isClaimed = await claimHead(...input);
    scene.clock.now += 2 * SECOND_MS;
    Object.assign(scene.settings, { route: "queue", concurrencyCap: null, revision: 2 });
    return isClaimed;
  };
  await scene.wake();
  await scene.runFor(SECOND_MS);
  expect(scene.names()).toEqual([]);
  expect(scene.rung).toEqual([`${deliveryId({ ...scene.row("e0"), replayNo: 0 })} 1`]);
});

test("several requests of one key, begun before it was one, take as many places of the cap", async () => {
  const scene = laneScene({ orderingMode: "keyed", concurrencyCap: 3 });
  scene.add("a", ["a0", "a1", "a2"]);
  scene.add("b", ["b0"]);
  const lease = { status: "processing" as const, token: "another", attemptCount: 1, lockedUntil: T0 + 45_000 };
  for (const name of ["a0", "a1", "a2"]) Object.assign(scene.row(name), lease);
  await scene.wake();
  await scene.runFor(5 * SECOND_MS);
  expect(scene.names()).toEqual([]);
  Object.assign(scene.row("a0"), { status: "succeeded", token: null, lockedUntil: null });
  await scene.runFor(5 * SECOND_MS);
  expect(scene.names()).toEqual(["b0"]);
});
