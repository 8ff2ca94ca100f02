import { expect, test } from "vitest";
import type { ShardDeps } from "../../../src/app/deps.ts";
import { createPublishConfigCache } from "../../../src/app/publish/publish-config.ts";
import { createApi, createTestTenant } from "../support/api.ts";
import { createScene } from "../support/scene.ts";
import { createTestContext, publish, shardDeps } from "../support/worker.ts";

const event = { type: "order.created", source: "orders" };

test("a subscription made by another isolate is not missed: the commit sees that what was matched is stale", async () => {
  const scene = await createScene();
  const elsewhere = { ...shardDeps(scene.tenant, createTestContext()), publishConfigs: createPublishConfigCache() };
  expect((await publish(elsewhere, scene.tenant, event)).deliveryCount).toBe(1);
  const second = await scene.tenant.api.post("/v1/endpoints", { url: "https://second.example/" });
  await scene.tenant.api.post("/v1/subscriptions", { endpoint_id: second.body.id, event_type_pattern: "order.*" });
  expect((await publish(elsewhere, scene.tenant, event)).deliveryCount).toBe(2);
});

test("a key that was revoked is refused at once, though an isolate remembers it", async () => {
  const scene = await createScene();
  const created = await scene.tenant.api.post("/v1/api-keys", { scope: "admin" });
  const caller = createApi(created.body.key);
  const body = { ...event, payload: 1 };
  expect((await caller.post("/v1/events", body)).status).toBe(202);
  await scene.tenant.api.delete(`/v1/api-keys/${created.body.id}`);
  expect((await caller.post("/v1/events", body)).status).toBe(401);
});

test("an event for a disabled endpoint is on record as a failed delivery, and bulk work can find it", async () => {
  const scene = await createScene();
  await scene.tenant.api.post(`/v1/endpoints/${scene.endpointId}/disable`);
  const answer = await scene.tenant.api.post("/v1/events", { ...event, payload: 1 });
  expect(answer.body).toMatchObject({ delivery_count: 1, deliveries: [{ status: "failed" }] });
  const delivery = await scene.tenant.api.get(`/v1/deliveries/${answer.body.deliveries[0].id}`);
  expect(delivery.body).toMatchObject({ status: "failed", final_outcome: "endpoint_disabled", attempts: [] });
});

test("a commit that took effect and threw is done again without a second event or delivery", async () => {
  const scene = await createScene();
  const deps = shardDeps(scene.tenant, createTestContext());
  let throws = 2;
  const lossy: ShardDeps = {
    ...deps,
    sleep: async () => {},
    async commitPublish(...args) {
      const result = await deps.commitPublish(...args);
      if (throws-- > 0) throw new Error("Network connection lost.");
      return result;
    },
  };
  const accepted = await publish(lossy, scene.tenant, { ...event, idempotency_key: "k" });
  expect(accepted).toMatchObject({ duplicate: false, deliveryCount: 1 });
  const { body } = await scene.tenant.api.get("/v1/deliveries");
  expect(body.data).toHaveLength(1);
});

test("when a store refuses for good nothing is acknowledged: 503, and the caller may try again", async () => {
  const scene = await createScene();
  const deps = { ...shardDeps(scene.tenant, createTestContext()), sleep: async () => {} };
  const refuse = () => Promise.reject(new Error("away"));
  await expect(publish({ ...deps, putPayloads: refuse }, scene.tenant, event)).rejects.toMatchObject({
    code: "unavailable",
  });
  await expect(publish({ ...deps, commitPublish: refuse }, scene.tenant, event)).rejects.toMatchObject({
    code: "unavailable",
  });
  expect((await scene.tenant.api.get("/v1/events")).body.data).toEqual([]);
});

test("a key is free again after its event has expired, whether or not that row is deleted", async () => {
  const scene = await createScene();
  const deps = shardDeps(scene.tenant, createTestContext());
  const keyed = { ...event, idempotency_key: "daily" };
  const first = await publish(deps, scene.tenant, keyed);
  await scene.db.prepare("update event set expires_at = 1 where id = ?").bind(first.id).run();
  const second = await publish(deps, scene.tenant, keyed, '{"other":true}');
  expect(second).toMatchObject({ duplicate: false });
  expect(second.id).not.toBe(first.id);
  expect((await publish(deps, scene.tenant, keyed, '{"other":true}')).id).toBe(second.id);
});

test("the payloads of one request are one object, and a duplicate leaves none behind", async () => {
  const tenant = await createTestTenant();
  await tenant.api.post("/v1/sources", { name: "orders" });
  const events = [1, 22, 333].map((payload) => ({ ...event, payload }));
  const answer = await tenant.api.post("/v1/events/batch", { events });
  const rows = await Promise.all(
    answer.body.results.map(async ({ id }: { id: string }) => (await tenant.api.get(`/v1/events/${id}`)).body),
  );
  expect(new Set(rows.map(({ payload_ref }) => payload_ref.split("#")[0])).size).toBe(1);
  for (const [i, { id }] of rows.entries()) {
    const read = await tenant.api.request(`/v1/events/${id}/payload`, { method: "GET" });
    expect(read.body).toBe([1, 22, 333][i]);
    expect(read.headers.get("Content-Disposition")).toBe("attachment");
  }
});

test("a configuration that changed under a batch leaves every event its own bytes, and refused ones reach nobody", async () => {
  const scene = await createScene();
  const { api } = scene.tenant;
  const narrowed = await api.post("/v1/sources", { name: "narrowed" });
  const batch = (names: string[]) =>
    names.map((source, n) => ({
      type: `${source}.made`,
      source,
      payload: { from: source, filler: "x".repeat(n * 7) },
    }));
  // The isolate remembers a configuration that lacks one source, and lets another publish anything.
  await api.post("/v1/events", { ...event, payload: 1 });
  await api.post("/v1/sources", { name: "added" });
  await api.patch(`/v1/sources/${narrowed.body.id}`, { allowed_event_types: ["nothing"] });
  const answer = await api.post("/v1/events/batch", { events: batch(["added", "narrowed", "orders"]) });
  expect(answer.body.results.map(({ status }: { status: number }) => status)).toEqual([202, 403, 202]);
  for (const [i, source] of [
    [0, "added"],
    [2, "orders"],
  ] as const) {
    const { body } = await api.get(`/v1/events/${answer.body.results[i].id}/payload`);
    expect(body).toMatchObject({ from: source });
  }
});

test("a commit whose answer was lost counts, though the configuration has changed before it is asked for again", async () => {
  const scene = await createScene();
  const deps = shardDeps(scene.tenant, createTestContext());
  let isLost = true;
  const lossy: ShardDeps = {
    ...deps,
    sleep: async () => {},
    async commitPublish(...args) {
      const result = await deps.commitPublish(...args);
      if (!isLost) return result;
      isLost = false;
      await scene.tenant.api.delete(`/v1/endpoints/${scene.endpointId}`);
      throw new Error("Network connection lost.");
    },
  };
  const accepted = await publish(lossy, scene.tenant, event);
  expect(accepted).toMatchObject({ duplicate: false, deliveryCount: 1 });
  expect((await scene.tenant.api.get(`/v1/events/${accepted.id}`)).body.delivery_count).toBe(1);
});
