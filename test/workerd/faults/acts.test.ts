import { expect, test } from "vitest";
import { fakeTime, sweep, TIMEOUT_MS, type Scenario } from "./support/sweep.ts";
import type { Scene } from "./support/scene.ts";

fakeTime();

const endpointPath = (scene: Scene, act = "") => `/v1/endpoints/${scene.endpointId}${act}`;
const slow = (scene: Scene) => {
  scene.world.receiver.answer = () => ({ status: 200, afterMs: 3_000 });
};
/** A first request that fails, and a retry in an hour. */
async function failOnce(scene: Scene) {
  scene.world.receiver.answer = ({ attempt }) => ({ status: attempt === 1 ? 503 : 200 });
  await scene.publish("a");
  while ((await scene.rows()).deliveries[0]?.["failure_count"] !== 1) await scene.world.sleep(100);
}
const HOURLY = { retry_policy: { delays_seconds: [3_600], jitter: 0 } };

const scenarios: Scenario[] = [
  {
    name: "an endpoint becomes strict while requests are in flight",
    isFresh: true,
    only: /request: D1 .*update endpoint|lane: D1 .*update|(consumer|lane): Sender/,
    async act(scene) {
      // The second is under way for longer than the first waits for its retry.
      scene.world.receiver.answer = ({ name, attempt }) => {
        if (name === "b") return { status: 200, afterMs: 10_000 };
        return name === "a" && attempt === 1 ? { status: 503, afterMs: 1_500 } : { status: 200 };
      };
      await scene.publish("a");
      await scene.publish("b");
      await scene.world.sleep(1_000);
      await scene.persist("PATCH", endpointPath(scene), { ordering_mode: "strict" });
      await scene.publish("c");
    },
  },
  {
    name: "an endpoint is paused and resumed",
    isFresh: true,
    only: /request: D1 .*update (endpoint|delivery)|consumer: D1 update delivery/,
    async act(scene) {
      await scene.persist("POST", endpointPath(scene, "/pause"));
      await scene.publish("a");
      await scene.world.sleep(2_000);
      await scene.persist("POST", endpointPath(scene, "/resume"));
    },
  },
  {
    name: "an endpoint is disabled and enabled",
    isFresh: true,
    only: /update endpoint|request: D1 update delivery/,
    ends: { b: ["failed"] },
    async act(scene) {
      scene.world.receiver.answer = ({ attempt }) => ({ status: attempt === 1 ? 503 : 200 });
      await scene.publish("a");
      await scene.world.sleep(1_000);
      await scene.persist("POST", endpointPath(scene, "/disable"));
      await scene.publish("b");
      await scene.world.sleep(20_000);
      await scene.persist("POST", endpointPath(scene, "/enable"));
    },
  },
  {
    name: "a lane is moved in the middle of a request",
    isFresh: true,
    isStrict: true,
    only: /request: D1 .*update endpoint|lane: D1 .*update/,
    endpoint: { ordering_mode: "strict" },
    async act(scene) {
      slow(scene);
      await scene.publish("a");
      await scene.publish("b");
      await scene.world.sleep(1_000);
      await scene.persist("POST", endpointPath(scene, "/lane/move"));
    },
  },
  {
    name: "a replay",
    isOneMore: true,
    maxReplays: 9,
    only: /^request: D1/,
    arrange: (scene) => failOnce(scene).then(() => scene.world.sleep(10_000)),
    act: (scene) => scene.persist("POST", `/v1/deliveries/${scene.idOf("a")}/replay`, {}),
  },
  {
    name: "a retry",
    endpoint: HOURLY,
    only: /^request/,
    arrange: failOnce,
    act: (scene) => scene.persist("POST", `/v1/deliveries/${scene.idOf("a")}/retry`),
  },
  {
    name: "a cancel",
    endpoint: HOURLY,
    only: /^request/,
    ends: { a: ["cancelled"] },
    arrange: failOnce,
    act: (scene) => scene.persist("POST", `/v1/deliveries/${scene.idOf("a")}/cancel`),
  },
];

for (const scenario of scenarios) {
  test(`${scenario.name}: whatever fails, what was promised is kept`, { timeout: TIMEOUT_MS }, async () => {
    expect(await sweep(scenario)).toEqual([]);
  });
}
