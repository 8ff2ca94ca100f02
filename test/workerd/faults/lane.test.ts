import { expect, test } from "vitest";
import { fakeTime, sweep, TIMEOUT_MS, type Scenario } from "./support/sweep.ts";
import type { Scene } from "./support/scene.ts";

fakeTime();

const OF_THE_LANE = /^lane: (D1|R2|Sender|storage setAlarm)|^lane alarm|: lane wake/;

const failFirst = (scene: Scene, status: number) => {
  scene.world.receiver.answer = ({ name, attempt }) => ({ status: name === "a" && attempt === 1 ? status : 200 });
};

async function publishAll(scene: Scene, names: string[], fields: (name: string) => object = () => ({})) {
  for (const name of names) await scene.publish(name, fields(name) as Record<string, unknown>);
}

/** Waits, as an operator would, for the lane to stop, and lets it go on. */
async function letGoOn(scene: Scene, how: "skip" | "replay") {
  while ((await scene.rows()).blocks.length === 0) await scene.world.sleep(5_000);
  const id = scene.idOf("a");
  await (how === "skip"
    ? scene.persist("POST", `/v1/endpoints/${scene.endpointId}/lane/skip`, { delivery_id: id })
    : scene.persist("POST", `/v1/deliveries/${id}/replay`, {}));
}

const scenarios: Scenario[] = [
  {
    name: "a strict lane whose first head fails once",
    only: OF_THE_LANE,
    isStrict: true,
    endpoint: { ordering_mode: "strict" },
    act(scene) {
      failFirst(scene, 503);
      return publishAll(scene, ["a", "b"]);
    },
  },
  {
    name: "a strict lane that its dead head blocks, and a skip",
    only: /lane: D1 .*(lane_block|update)|D1 .*delete lane_block/,
    isStrict: true,
    endpoint: { ordering_mode: "strict", on_exhausted: "block" },
    ends: { a: ["dead_letter"] },
    async act(scene) {
      scene.world.receiver.answer = ({ name }) => ({ status: name === "a" ? 400 : 200 });
      await publishAll(scene, ["a", "b"]);
      await letGoOn(scene, "skip");
    },
  },
  {
    name: "a strict lane that its dead head blocks, and its replay",
    only: /D1 .*insert delivery/,
    endpoint: { ordering_mode: "strict", on_exhausted: "block" },
    ends: { a: ["dead_letter", "succeeded"] },
    isOneMore: true,
    maxReplays: 9,
    async act(scene) {
      let isFirst = true;
      scene.world.receiver.answer = ({ name }) => {
        const status = name === "a" && isFirst ? 400 : 200;
        if (name === "a") isFirst = false;
        return { status };
      };
      await publishAll(scene, ["a", "b"]);
      await letGoOn(scene, "replay");
    },
  },
  {
    name: "a lane of an unordered endpoint with a cap",
    only: /lane: (D1 .*update|D1 select delivery|Sender)/,
    endpoint: { concurrency_cap: 1 },
    act(scene) {
      failFirst(scene, 503);
      return publishAll(scene, ["a", "b"]);
    },
  },
  {
    name: "a lane with keys",
    only: /lane: D1 .*update/,
    endpoint: { ordering_mode: "keyed", concurrency_cap: 5 },
    act(scene) {
      failFirst(scene, 503);
      return publishAll(scene, ["a", "b", "c"], (name) => ({ ordering_key: name === "b" ? "k2" : "k1" }));
    },
  },
  {
    name: "a lane with a rate",
    only: /lane: D1 .*update/,
    isStrict: true,
    endpoint: { ordering_mode: "strict", rate_limit_per_second: 1 },
    act: (scene) => publishAll(scene, ["a", "b"]),
  },
];

for (const scenario of scenarios) {
  test(`${scenario.name}: whatever fails, what was promised is kept`, { timeout: TIMEOUT_MS }, async () => {
    expect(await sweep(scenario)).toEqual([]);
  });
}
