import { expect, test } from "vitest";
import { laneScene } from "./support/lane.ts";
import { T0 } from "./support/report.ts";

const MINUTE_MS = 60_000;
const padded = (n: number) => String(n).padStart(4, "0");

test("while a lane of many keys stands still, what expires in any of them ends within two minutes", async () => {
  const scene = laneScene({ orderingMode: "keyed", pausedAt: T0 });
  for (let n = 0; n < 640; n++) scene.add(`k${padded(n)}`, [`e${n}`], { expiresAt: T0 + MINUTE_MS });
  await scene.wake();
  await scene.runFor(2 * MINUTE_MS);
  expect(new Set(Array.from({ length: 640 }, (_, n) => scene.row(`e${n}`).status))).toEqual(new Set(["expired"]));
});

test("what stands still is looked through once a minute, sixty-four keys a second, and no more often", async () => {
  const scene = laneScene({ orderingMode: "keyed", disabledAt: T0 });
  for (let n = 0; n < 200; n++) scene.add(`k${padded(n)}`, [`e${n}`]);
  await scene.wake();
  expect(scene.loads).toHaveLength(1);
  await scene.runFor(10 * MINUTE_MS);
  expect(scene.loads.length).toBeLessThanOrEqual(4 * 11);
});

test("a lease that is awaited takes room and no more: every part of the lane is reached beside it", async () => {
  const scene = laneScene({ orderingMode: "keyed", concurrencyCap: 2 });
  scene.add("zz", ["lost"], { status: "processing", token: "dead", attemptCount: 1, lockedUntil: T0 + 45_000 });
  for (let n = 0; n < 200; n++) scene.add(`k${padded(n)}`, [`e${n}`]);
  scene.answer = () => ({ status: 200, tookMs: 5 });
  const looks: (string[] | null)[] = [];
  const { listInFlight } = scene.deps;
  scene.deps.listInFlight = (tenant, endpoint, laneKeys) => {
    looks.push(laneKeys);
    return listInFlight(tenant, endpoint, laneKeys);
  };
  await scene.wake();
  await scene.runFor(20_000);
  expect(new Set(scene.names()).size).toBe(200);
  expect(scene.mostInFlight.total).toBe(1);
  await scene.runFor(40_000);
  expect(scene.names().at(-1)).toBe("lost");
  // The whole lane is read once, then what was found.
  expect(looks.filter((laneKeys) => laneKeys === null)).toHaveLength(1);
  expect(looks.slice(1)).toEqual(looks.slice(1).map(() => ["zz"]));
});
