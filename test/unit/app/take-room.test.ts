import { describe, expect, test } from "vitest";
import { createInFlight } from "../../../src/app/deliver/in-flight.ts";
import type { LoadedDelivery } from "../../../src/app/deliver/prepare.ts";
import { takeRoom, type TakeRoomDeps } from "../../../src/app/deliver/take-room.ts";

const T0 = 1_700_000_000_000;
const ENDPOINT = { url: "https://consumer.example/hook", timeoutMs: 15_000 };
const PLACE = { tenantId: "ten_a", endpointId: "ep_a", endpoint: ENDPOINT };

function room() {
  const inFlight = createInFlight();
  const clock = { now: T0 };
  const quarantined: { url: string; inFlight: number; oldestMs: number }[] = [];
  const scene = {
    inFlight,
    clock,
    quarantined,
    slept: 0,
    /** What happens while somebody waits. */
    meanwhile: () => {},
    async take(count: number, attemptNumber = 1, url = ENDPOINT.url) {
      const started: unknown[] = [];
      const deps: TakeRoomDeps = {
        inFlight,
        now: () => clock.now,
        async sleep(ms) {
          clock.now += ms;
          scene.slept += ms;
          scene.meanwhile();
        },
        quarantine: async (_place, seen) => void quarantined.push(seen),
      };
      const delivery = { ...PLACE, event: { payloadSize: 1 }, endpoint: { ...ENDPOINT, url } } as LoadedDelivery;
      const jobs = Array.from({ length: count }, () => ({ delivery, attemptNumber }));
      const rest = await takeRoom(deps, jobs, (some) => {
        started.push(...some);
        for (const { delivery: place } of some) inFlight.begin(place, clock.now);
      });
      return [started.length, rest.length];
    },
    /** The oldest request is answered. */
    answer(isRetry = false) {
      const startedAt = inFlight.standingOf(PLACE)!.startedAt[0]!;
      inFlight.end(PLACE, startedAt, clock.now);
      inFlight.release(PLACE, 1, isRetry);
    },
  };
  return scene;
}

describe("deliveries to one endpoint", () => {
  test("start as the answers of others make room for them", async () => {
    const scene = room();
    scene.meanwhile = () => scene.answer();
    expect(await scene.take(60)).toEqual([60, 0]);
    expect(scene.quarantined).toEqual([]);
  });

  test("are given back at once while it has answered nothing for two seconds, and nobody waits for it", async () => {
    const scene = room();
    expect(await scene.take(8)).toEqual([8, 0]);
    scene.clock.now += 2_000;
    expect(await scene.take(5)).toEqual([0, 5]);
    expect(scene.slept).toBe(0);
    expect(scene.quarantined).toEqual([]);
  });

  test("take it out of the way once it hangs, and are given back", async () => {
    const scene = room();
    await scene.take(8);
    scene.clock.now += 5_000;
    expect(await scene.take(5)).toEqual([0, 5]);
    expect(scene.quarantined).toEqual([{ url: ENDPOINT.url, inFlight: 8, oldestMs: 5_000 }]);
  });

  test("of another URL than the one that hangs start at once, and nobody takes their endpoint out of the way", async () => {
    const scene = room();
    await scene.take(8);
    scene.clock.now += 5_000;
    expect(await scene.take(5, 1, "https://consumer.example/mended")).toEqual([5, 0]);
    expect(scene.quarantined).toEqual([]);
  });

  test("that are retries wait for first attempts that wait, and leave them half of the room", async () => {
    const scene = room();
    expect(await scene.take(40, 2)).toEqual([4, 36]);
    expect(await scene.take(4)).toEqual([4, 0]);
    scene.inFlight.countWaiting(PLACE, 1);
    scene.answer(true);
    scene.answer(true);
    scene.clock.now += 10;
    expect(scene.inFlight.reserve(PLACE, [1], true, scene.clock.now)).toBe(0);
  });

  test("that wait are counted no longer when they have been given back", async () => {
    const scene = room();
    await scene.take(8);
    await scene.take(5);
    for (let n = 0; n < 8; n++) scene.answer();
    expect(scene.inFlight.reserve(PLACE, [1], true, scene.clock.now)).toBe(1);
  });
});
