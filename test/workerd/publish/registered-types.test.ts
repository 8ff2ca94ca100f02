import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { createApi, createTestTenant, operatorToken, type TestTenant } from "../support/api.ts";
import { countingEnv, createCost } from "../support/counting.ts";
import { createScene } from "../support/scene.ts";
import { createTestContext, publish, shardDeps } from "../support/worker.ts";

const operator = createApi(operatorToken);
const SCHEMA = {
  type: "object",
  required: ["id"],
  properties: { id: { type: "integer" }, lines: { items: { properties: { price: { minimum: 0 } } } } },
};

async function createProducer(): Promise<TestTenant> {
  const tenant = await createTestTenant();
  await tenant.api.post("/v1/sources", { name: "orders" });
  return tenant;
}

const event = (fields: Record<string, unknown> = {}) => ({
  type: "order.created",
  source: "orders",
  payload: { id: 1 },
  ...fields,
});

test("a payload is held to the schema of its version, and a refusal names the path and stores nothing", async () => {
  const { api } = await createProducer();
  await api.post("/v1/event-types", { name: "order.created", json_schema: SCHEMA });
  await api.post("/v1/event-types", { name: "order.created", schema_version: 2 });
  const refused = await api.post("/v1/events", event({ payload: { lines: [{ price: 1 }, { price: -1 }] } }));
  expect(refused).toMatchObject({ status: 422, body: { code: "validation_failed" } });
  expect(refused.body.errors).toEqual([
    { path: "payload.id", message: "is required" },
    { path: "payload.lines.1.price", message: "must be at least 0" },
  ]);
  expect((await api.get("/v1/events")).body.data).toEqual([]);
  for (const fits of [event(), event({ schema_version: 2, payload: 7 }), event({ schema_version: 3, payload: 7 })]) {
    expect((await api.post("/v1/events", fits)).status).toBe(202);
  }
});

test("a retry of what was accepted is its duplicate, though it would be refused by now; another event under its key is refused", async () => {
  const { api } = await createProducer();
  const { body: source } = await api.get("/v1/sources");
  const keyed = (key: string, fields = {}) => event({ idempotency_key: key, payload: "free", ...fields });
  const first = await api.post("/v1/events", keyed("a"));
  expect(first.status).toBe(202);
  const tighten: [string, () => Promise<unknown>][] = [
    ["validation_failed", () => api.post("/v1/event-types", { name: "order.created", json_schema: SCHEMA })],
    [
      "event_type_not_allowed",
      () => api.patch(`/v1/sources/${source.data[0].id}`, { allowed_event_types: ["other.*"] }),
    ],
  ];
  for (const [code, tightenIt] of tighten) {
    await tightenIt();
    expect(await api.post("/v1/events", keyed("a"))).toMatchObject({
      status: 200,
      body: { id: first.body.id, duplicate: true, relayed_at: first.body.relayed_at },
    });
    for (const other of [keyed("a", { payload: "other" }), keyed("b"), keyed("a", { source: undefined })]) {
      expect((await api.post("/v1/events", other)).status).toBeGreaterThanOrEqual(403);
    }
    expect((await api.post("/v1/events", keyed("a", { payload: "other" }))).body.code).toBe(code);
    const batch = await api.post("/v1/events/batch", {
      events: [keyed("b"), keyed("a"), event({ type: "other.thing" }), keyed("a")],
    });
    expect(batch.body.results).toMatchObject([
      { error: { code } },
      { status: 200, id: first.body.id },
      { status: 202 },
      { status: 200, id: first.body.id },
    ]);
  }
  expect((await api.get("/v1/deliveries")).body.data).toEqual([]);
});

test("in a batch an event that does not fit sinks nobody else; a raw payload fits if it is JSON that does", async () => {
  const { api } = await createProducer();
  await api.post("/v1/event-types", { name: "order.created", json_schema: SCHEMA });
  const events = [event(), event({ payload: {} }), event({ type: "order.paid", payload: 1 })];
  const { body } = await api.post("/v1/events/batch", { events });
  expect(body.results.map(({ status }: { status: number }) => status)).toEqual([202, 422, 202]);
  const raw = (type: string, text: string) =>
    api.request("/v1/events/raw?type=order.created&source=orders", {
      method: "POST",
      body: text,
      headers: { "Content-Type": type },
    });
  expect((await raw("application/json", '{"id":1}')).status).toBe(202);
  expect(await raw("application/json", '{"id":"1"}')).toMatchObject({
    status: 422,
    body: { errors: [{ path: "payload.id" }] },
  });
  expect(await raw("text/plain", '{"id":1}')).toMatchObject({ status: 422, body: { errors: [{ path: "payload" }] } });
});

test("what is changed of a type holds for the next publish, by whatever isolate remembers it", async () => {
  const scene = await createScene();
  const { api } = scene.tenant;
  const deps = shardDeps(scene.tenant, createTestContext());
  const tryIt = () =>
    publish(deps, scene.tenant, { type: "order.created", source: "orders" }, "7").then(
      () => "accepted",
      ({ code }: { code: string }) => code,
    );
  // Another isolate: what this one remembers is changed behind its back by `api`.
  expect(await tryIt()).toBe("accepted");
  await api.post("/v1/event-types", { name: "order.created", json_schema: SCHEMA });
  expect(await tryIt()).toBe("validation_failed");
  await api.patch("/v1/event-types/order.created", { schema_version: 1, json_schema: null });
  expect(await tryIt()).toBe("accepted");
  await api.patch("/v1/event-types/order.created", { schema_version: 1, json_schema: { type: "string" } });
  expect(await tryIt()).toBe("validation_failed");
  await api.delete("/v1/event-types/order.created");
  expect(await tryIt()).toBe("accepted");
});

test("a tenant that asks for it publishes registered types and versions only, the relay's own apart", async () => {
  const tenant = await createProducer();
  const { api } = tenant;
  const require = (require_registered_types: boolean) =>
    operator.patch(`/v1/tenants/${tenant.id}`, { require_registered_types });
  expect((await api.post("/v1/events", event())).status).toBe(202);
  expect((await require(true)).body).toMatchObject({ require_registered_types: true });
  const refused = await api.post("/v1/events", event());
  expect(refused).toMatchObject({
    status: 422,
    body: { code: "event_type_not_registered", errors: [{ path: "type" }] },
  });
  await api.post("/v1/event-types", { name: "order.created" });
  expect((await api.post("/v1/events", event())).status).toBe(202);
  const unknown = await api.post("/v1/events", event({ schema_version: 2 }));
  expect(unknown).toMatchObject({ status: 422, body: { errors: [{ path: "schema_version" }] } });
  const { body: endpoint } = await api.post("/v1/endpoints", { url: "https://consumer.example/hook" });
  expect((await api.post(`/v1/endpoints/${endpoint.id}/test`)).status).toBe(200);
  await require(false);
  expect((await api.post("/v1/events", event({ type: "order.paid" }))).status).toBe(202);
});

test("a type with a schema costs a publish no trip, row or object more", async () => {
  const scene = await createScene();
  const fields = { type: "order.created", source: "orders" };
  const costOfNext = async () => {
    await publish(shardDeps(scene.tenant, createTestContext()), scene.tenant, fields);
    const cost = createCost();
    await publish(shardDeps(scene.tenant, createTestContext(), countingEnv(env as Env, cost)), scene.tenant, fields);
    return cost;
  };
  const plain = await costOfNext();
  await scene.tenant.api.post("/v1/event-types", { name: "order.created", json_schema: { type: "object" } });
  expect(await costOfNext()).toEqual(plain);
  expect(plain).toMatchObject({ ledgerTrips: 1, classA: 1 });
});
