import { expect, test } from "vitest";
import { fakeTime, sweep, TIMEOUT_MS, type Scenario } from "./support/sweep.ts";
import type { Scene } from "./support/scene.ts";

fakeTime();

const failFirst = (scene: Scene) => {
  scene.world.receiver.answer = ({ name, attempt }) => ({ status: name === "a" && attempt === 1 ? 503 : 200 });
};

const scenarios: Scenario[] = [
  {
    name: "a delivery by queues",
    act(scene) {
      failFirst(scene);
      return scene.publish("a");
    },
  },
  {
    name: "a strict lane",
    isStrict: true,
    endpoint: { ordering_mode: "strict" },
    async act(scene) {
      failFirst(scene);
      await scene.publish("a");
      await scene.publish("b");
    },
  },
];

const FAULTS = ["the clock goes an hour on", "the clock goes an hour back"] as const;

for (const scenario of scenarios) {
  test(`${scenario.name}: whenever the clock jumps, what was promised is kept`, { timeout: TIMEOUT_MS }, async () => {
    expect(await sweep({ ...scenario, only: /update|insert|Sender/, faults: [...FAULTS] })).toEqual([]);
  });
}
