import { expect, test } from "vitest";
import { createTestTenant } from "../support/api.ts";

const URL = "https://hooks.example.com/in";

async function createEndpoint() {
  const t = await createTestTenant();
  const { body: endpoint } = await t.api.post("/v1/endpoints", { url: URL });
  return { t, endpoint };
}

test("a subscription shows every field of the contract, then and later", async () => {
  const { t, endpoint } = await createEndpoint();
  const made = await t.api.post("/v1/subscriptions", {
    endpoint_id: endpoint.id,
    event_type_pattern: "invoice.*",
    retry_policy: { max_attempts: 2 },
    schema_version: null,
    filter: null,
    entitlement_scope: null,
  });
  expect(made.status).toBe(201);
  expect(made.body).toEqual({
    id: expect.stringMatching(/^sub_/),
    endpoint_id: endpoint.id,
    event_type_pattern: "invoice.*",
    filter: null,
    filter_failed_at: null,
    filter_failed_reason: null,
    filter_failed_event_id: null,
    schema_version: null,
    entitlement_scope: null,
    retry_policy: { max_attempts: 2 },
    disabled_at: null,
    last_disabled_at: null,
    created_at: expect.any(String),
  });
  expect((await t.api.get(`/v1/subscriptions/${made.body.id}`)).body).toEqual(made.body);
});

test("an endpoint of another tenant, of nothing and a deleted one are refused alike", async () => {
  const { t, endpoint } = await createEndpoint();
  const other = await createEndpoint();
  await t.api.delete(`/v1/endpoints/${endpoint.id}`);
  const ids = [other.endpoint.id, "ep_0000000000000000", endpoint.id];
  const refusals = await Promise.all(
    ids.map((id) => t.api.post("/v1/subscriptions", { endpoint_id: id, event_type_pattern: "*" })),
  );
  for (const { status, body } of refusals) {
    expect(status).toBe(422);
    expect(body.errors).toEqual([{ path: "endpoint_id", message: "no such endpoint" }]);
  }
});

test.each([
  [{ event_type_pattern: "" }, "validation_failed", "event_type_pattern"],
  [{ event_type_pattern: "a.**" }, "validation_failed", "event_type_pattern"],
  [{ event_type_pattern: "hooklane.test" }, "not_supported", "event_type_pattern"],
  [{ filter: "payload.a ==" }, "validation_failed", "filter"],
  [{ retry_policy: { jitter: 2 } }, "validation_failed", "retry_policy.jitter"],
  [{ state: "active" }, "validation_failed", "state"],
])("%j is refused as %s, at creation and in a change", async (part, code, path) => {
  const { t, endpoint } = await createEndpoint();
  const good = { endpoint_id: endpoint.id, event_type_pattern: "*" };
  const { body: subscription } = await t.api.post("/v1/subscriptions", good);
  const expected = { status: 422, body: { code, errors: [{ path }] } };
  expect(await t.api.post("/v1/subscriptions", { ...good, ...part })).toMatchObject(expected);
  expect(await t.api.patch(`/v1/subscriptions/${subscription.id}`, part)).toMatchObject(expected);
});

test("a change touches only what it names; an override is merged and null takes it away", async () => {
  const { t, endpoint } = await createEndpoint();
  const { body: subscription } = await t.api.post("/v1/subscriptions", {
    endpoint_id: endpoint.id,
    event_type_pattern: "a",
    retry_policy: { max_attempts: 2 },
  });
  const path = `/v1/subscriptions/${subscription.id}`;
  expect((await t.api.patch(path, { event_type_pattern: "b" })).body).toEqual({
    ...subscription,
    event_type_pattern: "b",
  });
  expect((await t.api.patch(path, { retry_policy: { jitter: 0 } })).body.retry_policy).toEqual({
    max_attempts: 2,
    jitter: 0,
  });
  expect((await t.api.patch(path, { retry_policy: null })).body.retry_policy).toBeNull();
  expect((await t.api.patch(path, { endpoint_id: endpoint.id })).status).toBe(422);
});

test("many subscriptions of one endpoint can be made at once", async () => {
  const { t, endpoint } = await createEndpoint();
  const answers = await Promise.all(
    Array.from({ length: 12 }, (_, n) =>
      t.api.post("/v1/subscriptions", {
        endpoint_id: endpoint.id,
        event_type_pattern: `type.${n}`,
        retry_policy: { max_attempts: n + 1 },
      }),
    ),
  );
  expect(answers.every(({ status }) => status === 201)).toBe(true);
  expect((await t.api.get("/v1/subscriptions")).body.data).toHaveLength(12);
});

test("a list can be kept to one endpoint", async () => {
  const { t, endpoint } = await createEndpoint();
  const { body: second } = await t.api.post("/v1/endpoints", { url: URL });
  const { body: mine } = await t.api.post("/v1/subscriptions", { endpoint_id: endpoint.id, event_type_pattern: "*" });
  await t.api.post("/v1/subscriptions", { endpoint_id: second.id, event_type_pattern: "*" });
  expect((await t.api.get(`/v1/subscriptions?endpoint_id=${endpoint.id}`)).body).toEqual({
    data: [mine],
    next_cursor: null,
  });
  expect((await t.api.get("/v1/subscriptions?endpoint_id=ep_0000000000000000")).body.data).toEqual([]);
});

test("a deleted subscription is gone", async () => {
  const { t, endpoint } = await createEndpoint();
  const { body } = await t.api.post("/v1/subscriptions", { endpoint_id: endpoint.id, event_type_pattern: "*" });
  const path = `/v1/subscriptions/${body.id}`;
  expect((await t.api.delete(path)).status).toBe(204);
  expect((await t.api.get(path)).status).toBe(404);
  expect((await t.api.patch(path, {})).status).toBe(404);
  expect((await t.api.delete(path)).status).toBe(404);
});
