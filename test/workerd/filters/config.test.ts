import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { shardsOf } from "../../../src/compose.ts";
import { createTestTenant } from "../support/api.ts";

async function createEndpoint() {
  const t = await createTestTenant();
  const { body } = await t.api.post("/v1/endpoints", { url: "https://hooks.example.com/in" });
  return { t, good: { endpoint_id: body.id, event_type_pattern: "*" } };
}

test("a filter is stored as it was given, changed, and cleared by null", async () => {
  const { t, good } = await createEndpoint();
  const filter = ' payload.total > 10 // "ä"\n';
  const made = await t.api.post("/v1/subscriptions", { ...good, filter });
  expect(made).toMatchObject({ status: 201, body: { filter, filter_failed_at: null, filter_failed_reason: null } });
  const path = `/v1/subscriptions/${made.body.id}`;
  expect((await t.api.get(path)).body).toEqual(made.body);
  expect((await t.api.get("/v1/subscriptions")).body.data).toEqual([made.body]);
  expect((await t.api.patch(path, { event_type_pattern: "order.*" })).body.filter).toBe(filter);
  expect((await t.api.patch(path, { filter: "true" })).body.filter).toBe("true");
  expect((await t.api.patch(path, { filter: null })).body.filter).toBeNull();
  expect((await t.api.get(path)).body.filter).toBeNull();
});

test.each([
  ["payload.total >", { offset: 15, line: 1, column: 16 }],
  ["true &&\n  foo == 1", { offset: 10, line: 2, column: 3 }],
  ["event.tpye == 'order.paid'", { offset: 6, line: 1, column: 7 }],
  ["payload.name.matches('a+')", { offset: 13, line: 1, column: 14 }],
  ["payload.is_test", null],
  ["payload.total + 1", { offset: 0, line: 1, column: 1 }],
  ["size(payload.items)", { offset: 0, line: 1, column: 1 }],
  ["", { offset: 0, line: 1, column: 1 }],
  [`${"!".repeat(2_000)}true`, { offset: 1_600, line: 1, column: 1_601 }],
  ["(".repeat(40), { offset: 32, line: 1, column: 33 }],
  [`true //${"x".repeat(2_048)}`, { offset: 2_048, line: 1, column: 2_049 }],
])("%j is taken only if it can be a filter; a refusal says where it cannot", async (filter, position) => {
  const { t, good } = await createEndpoint();
  const answer = await t.api.post("/v1/subscriptions", { ...good, filter });
  if (position === null) return expect(answer.status).toBe(201);
  const errors = [{ path: "filter", message: expect.stringContaining(`line ${position.line}`), position }];
  expect(answer).toMatchObject({ status: 422, body: { code: "validation_failed", errors } });
  const { body } = await t.api.post("/v1/subscriptions", { ...good, filter: "true" });
  const changed = await t.api.patch(`/v1/subscriptions/${body.id}`, { filter });
  expect(changed).toMatchObject({ status: 422, body: { errors } });
  expect((await t.api.get(`/v1/subscriptions/${body.id}`)).body.filter).toBe("true");
});

test("a filter that is no text is refused", async () => {
  const { t, good } = await createEndpoint();
  for (const filter of [1, true, ["true"], { a: 1 }]) {
    const answer = await t.api.post("/v1/subscriptions", { ...good, filter });
    expect(answer).toMatchObject({ status: 422, body: { errors: [{ path: "filter" }] } });
  }
});

test("a tenant's filters have a million characters at most, and one that is deleted or replaced gives its room back", async () => {
  const { t, good } = await createEndpoint();
  const db = shardsOf(env as Env).get(t.shard)!;
  const made = await t.api.post("/v1/subscriptions", { ...good, filter: "true" });
  const large = await t.api.post("/v1/subscriptions", { ...good, filter: "false" });
  // As nobody can write it: one filter that leaves room for ten characters beside the other one.
  const filled = db.prepare("update subscription set filter = ? where tenant_id = ? and id = ?");
  await filled.bind("x".repeat(1_000_000 - 14), t.id, large.body.id).run();
  const path = `/v1/subscriptions/${made.body.id}`;
  expect((await t.api.patch(path, { filter: "true||true" })).status).toBe(200);
  const full = { status: 409, body: { code: "quota_exceeded" } };
  expect(await t.api.patch(path, { filter: "true  || true || true" })).toMatchObject(full);
  expect(await t.api.post("/v1/subscriptions", { ...good, filter: "true " })).toMatchObject(full);
  expect((await t.api.post("/v1/subscriptions", good)).status).toBe(201);
  await t.api.delete(`/v1/subscriptions/${large.body.id}`);
  expect((await t.api.patch(path, { filter: "true  || true || true" })).status).toBe(200);
});
