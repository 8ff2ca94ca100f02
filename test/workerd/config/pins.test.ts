import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { createEventTypeStore } from "../../../src/storage/config/event-types.ts";
import { shardsOf } from "../../../src/compose.ts";
import { createSubscriptionStore } from "../../../src/storage/config/subscriptions.ts";
import { createTestTenant } from "../support/api.ts";

async function createConsumer() {
  const tenant = await createTestTenant();
  const { api } = tenant;
  const { body: endpoint } = await api.post("/v1/endpoints", { url: "https://consumer.example/hook" });
  return {
    tenant,
    api,
    endpoint,
    register: (schema_version: number) => api.post("/v1/event-types", { name: "order.created", schema_version }),
    subscribe: (fields: Record<string, unknown> = {}) =>
      api.post("/v1/subscriptions", { endpoint_id: endpoint.id, event_type_pattern: "order.created", ...fields }),
    retire: (fields: Record<string, unknown> = {}) =>
      api.patch("/v1/event-types/order.created", { schema_version: 3, retired: true, ...fields }),
  };
}

test("a subscription to one type that says nothing is pinned to the newest registered that lives, 1 where there is none", async () => {
  const consumer = await createConsumer();
  const pinOf = async (fields: Record<string, unknown> = {}) => (await consumer.subscribe(fields)).body.schema_version;
  expect(await pinOf()).toBe(1);
  for (const version of [3, 10, 9]) await consumer.register(version);
  expect(await pinOf()).toBe(10);
  await consumer.retire({ schema_version: 10, force: true });
  expect(await pinOf()).toBe(9);
  expect(await pinOf({ schema_version: null })).toBeNull();
  expect(await pinOf({ schema_version: 4 })).toBe(4);
  expect(await pinOf({ event_type_pattern: "order.*" })).toBeNull();
  expect(await pinOf({ event_type_pattern: "order.*", schema_version: 2 })).toBe(2);
  for (const schema_version of [3, 9]) await consumer.retire({ schema_version, force: true });
  expect(await consumer.subscribe()).toMatchObject({ status: 422, body: { errors: [{ path: "schema_version" }] } });
});

test("a pin is changed, cleared, and left alone by other changes", async () => {
  const { api, subscribe } = await createConsumer();
  const { body: made } = await subscribe({ schema_version: 3 });
  const change = async (fields: object) =>
    (await api.patch(`/v1/subscriptions/${made.id}`, fields)).body.schema_version;
  expect(await change({ schema_version: 4 })).toBe(4);
  expect(await change({ retry_policy: { max_attempts: 1 } })).toBe(4);
  expect(await change({ event_type_pattern: "order.*" })).toBe(4);
  expect(await change({ schema_version: null })).toBeNull();
  expect((await api.get(`/v1/subscriptions/${made.id}`)).body.schema_version).toBeNull();
});

test.each([0, -1, 1.5, "3", 2_147_483_648, true])("a pin of %j is refused by name", async (schema_version) => {
  const { subscribe, api } = await createConsumer();
  const { body: made } = await subscribe();
  const wrong = { status: 422, body: { code: "validation_failed", errors: [{ path: "schema_version" }] } };
  expect(await subscribe({ schema_version })).toMatchObject(wrong);
  expect(await api.patch(`/v1/subscriptions/${made.id}`, { schema_version })).toMatchObject(wrong);
});

test("retiring a version is refused with those who ask for it, oldest first, until they have moved or are forced", async () => {
  const consumer = await createConsumer();
  const { api } = consumer;
  for (const version of [3, 4]) await consumer.register(version);
  const sits = await consumer.subscribe({ schema_version: 3 });
  const disabled = await consumer.subscribe({ schema_version: 3 });
  await api.post(`/v1/subscriptions/${disabled.body.id}/disable`);
  const wildcard = await consumer.subscribe({ event_type_pattern: "order.*", schema_version: 3 });
  await consumer.subscribe({ schema_version: 4 });
  await consumer.subscribe({ schema_version: null });
  await consumer.subscribe({ event_type_pattern: "user.*", schema_version: 3 });
  const gone = await consumer.subscribe({ schema_version: 3 });
  await api.delete(`/v1/subscriptions/${gone.body.id}`);

  const refused = await consumer.retire();
  expect(refused).toMatchObject({ status: 409, body: { code: "version_in_use" } });
  expect(refused.body.subscriptions).toHaveLength(3);
  expect(new Set(refused.body.subscriptions.map(({ id }: { id: string }) => id))).toEqual(
    new Set([sits, disabled, wildcard].map(({ body }) => body.id)),
  );
  expect(refused.body.subscriptions[0]).toEqual({
    id: expect.any(String),
    endpoint_id: consumer.endpoint.id,
    event_type_pattern: expect.any(String),
  });
  const before = (await api.get("/v1/event-types/order.created")).body;
  expect(before.versions.every(({ retired_at }: any) => retired_at === null)).toBe(true);

  for (const { body } of [sits, disabled]) await api.patch(`/v1/subscriptions/${body.id}`, { schema_version: 4 });
  expect((await consumer.retire()).body.subscriptions).toEqual([
    { id: wildcard.body.id, endpoint_id: consumer.endpoint.id, event_type_pattern: "order.*" },
  ]);
  expect((await consumer.retire({ force: true })).status).toBe(200);
  // Whoever still asks for it may change in all else, and nobody new may ask for it.
  const path = `/v1/subscriptions/${wildcard.body.id}`;
  expect((await api.patch(path, { retry_policy: { max_attempts: 2 } })).status).toBe(200);
  expect(await consumer.subscribe({ schema_version: 3 })).toMatchObject({ status: 422 });
  const moved = await api.patch(`/v1/subscriptions/${sits.body.id}`, { schema_version: 3 });
  expect(moved).toMatchObject({ status: 422, body: { errors: [{ path: "schema_version" }] } });
});

test("whoever asks for a version while it is being retired is told, or is in the list: never neither", async () => {
  const { tenant, endpoint, register, subscribe } = await createConsumer();
  await register(3);
  const db = shardsOf(env as Env).get(tenant.shard)!;
  const eventTypes = createEventTypeStore(db);
  const changes = { requiredScope: undefined, version: { schemaVersion: 3, isRetired: true, jsonSchema: undefined } };
  // It has read that nobody asks for it; then somebody does.
  const seen = await eventTypes.findWithPinned(tenant.id, "order.created", 3);
  await subscribe({ schema_version: 3 });
  expect(await eventTypes.update(tenant.id, "order.created", changes, seen!.tenantRevision, 1)).toBe("stale");
  // The other way round: the subscription has read that the version lives.
  const fresh = await eventTypes.findWithPinned(tenant.id, "order.created", 3);
  expect(fresh!.pinned).toHaveLength(1);
  expect(await eventTypes.update(tenant.id, "order.created", changes, fresh!.tenantRevision, 1)).toBe("stored");
  const policy = (await tenant.api.get(`/v1/endpoints/${endpoint.id}`)).body.retry_policy;
  const row = {
    id: "sub_late0000000000",
    endpointId: endpoint.id,
    eventTypePattern: "order.created",
    filter: null,
    filterFailure: null,
    entitlementScope: null,
    schemaVersion: 3,
    retryPolicy: null,
    disabledAt: null,
    lastDisabledAt: null,
    createdAt: 1,
  };
  const subscriptions = createSubscriptionStore(db);
  expect(await subscriptions.insert(tenant.id, row, { endpoint: policy, effective: null })).toBe("stale");
  const free = { ...row, schemaVersion: 4 };
  expect(await subscriptions.insert(tenant.id, free, { endpoint: policy, effective: null })).toBe("stored");
  expect(await subscriptions.update(tenant.id, free, row, { endpoint: policy, effective: null })).toBe(false);
});
