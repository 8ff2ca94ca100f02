import { expect, test } from "vitest";
import { MAX_HELD_BYTES } from "../../../src/core/lane.ts";
import { laneScene } from "./support/lane.ts";

const MIB = 1024 * 1024;

test("one lane does not hold more payloads than an isolate has room for, and brings all of them", async () => {
  const scene = laneScene({ orderingMode: "keyed", concurrencyCap: 100 });
  for (let n = 0; n < 100; n++) {
    const names = Array.from({ length: 4 }, (_, i) => `k${n}/${i}`);
    scene.add(`k${n}`, names);
    for (const name of names) scene.row(name).event.payloadSize = MIB;
  }
  // Read and not yet answered.
  let held = 0;
  let most = 0;
  const { getPayload, send } = scene.deps;
  scene.deps.getPayload = (...input) => {
    most = Math.max(most, ++held);
    return getPayload(...input);
  };
  scene.deps.send = (request) => send(request).finally(() => held--);
  scene.answer = () => ({ status: 200, tookMs: 50 });
  await scene.wake();
  await scene.runFor(10_000);
  expect(new Set(scene.names()).size).toBe(400);
  expect(most * MIB).toBeLessThanOrEqual(MAX_HELD_BYTES);
  // And all of the room is used.
  expect(scene.mostInFlight.total).toBe(16);
});
