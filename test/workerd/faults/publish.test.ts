import { expect, test } from "vitest";
import { fakeTime, sweep, TIMEOUT_MS, type Scenario } from "./support/sweep.ts";
import type { Scene } from "./support/scene.ts";

fakeTime();

const WRITES = /^request: (D1 .*insert event|R2)/;

async function publishRaw(scene: Scene) {
  const path = `/v1/events/raw?type=${scene.type}&source=orders&idempotency_key=${scene.type}-raw`;
  scene.keys.add(`${scene.type}-raw`);
  const { body } = await scene.persist("POST", path, '{"name":"raw"}', { "Content-Type": "application/json" });
  scene.acked.push({ name: "raw", id: body.id });
}

async function publishBatch(scene: Scene) {
  const event = (name: string) => scene.eventOf(name, { idempotency_key: `${scene.type}-${name}` });
  const events = [event("a"), { ...event("bad"), type: "no type!" }, event("b")];
  const { body } = await scene.persist("POST", "/v1/events/batch", { events });
  expect(body.results.map(({ status }: { status: number }) => status < 300)).toEqual([true, false, true]);
  for (const [i, name] of [
    [0, "a"],
    [2, "b"],
  ] as const) {
    scene.keys.add(`${scene.type}-${name}`);
    scene.acked.push({ name, id: body.results[i].id });
  }
}

const scenarios: Scenario[] = [
  // What consumers do then is swept with deliveries.
  { name: "publish with a key", only: /^request|^message/, act: (scene) => scene.publish("a") },
  {
    name: "publish without a key",
    only: WRITES,
    act: (scene) => scene.publish("a", { idempotency_key: null }),
  },
  { name: "publish raw", only: WRITES, act: publishRaw },
  { name: "publish a batch with a bad event", only: WRITES, act: publishBatch },
  {
    name: "publish a key again",
    only: WRITES,
    arrange: (scene) => scene.publish("a"),
    async act(scene) {
      const { status, body } = await scene.publish("a");
      expect([status, body.id]).toEqual([200, scene.acked[0]!.id]);
    },
  },
  {
    name: "publish past a filter that fails",
    only: WRITES,
    arrange: (scene) =>
      scene.persist("POST", "/v1/subscriptions", {
        endpoint_id: scene.endpointId,
        event_type_pattern: scene.type,
        filter: "payload.name > 1",
      }),
    async act(scene) {
      const { body } = await scene.publish("a");
      expect(body.skipped).toEqual([{ subscription_id: expect.any(String), reason: "type_mismatch" }]);
      // On the event and on the subscription, or on neither.
      const { body: flagged } = await scene.persist("GET", `/v1/subscriptions/${body.skipped[0].subscription_id}`);
      expect(flagged.filter_failed_event_id).toBe(body.id);
    },
  },
  {
    name: "publish under a configuration that has changed",
    only: WRITES,
    arrange: (scene) => scene.persist("PATCH", `/v1/endpoints/${scene.endpointId}`, { name: scene.type }),
    act: (scene) => scene.publish("a"),
  },
];

for (const scenario of scenarios) {
  test(`${scenario.name}: whatever fails, what was promised is kept`, { timeout: TIMEOUT_MS }, async () => {
    expect(await sweep(scenario)).toEqual([]);
  });
}
