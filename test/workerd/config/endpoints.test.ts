import { expect, test } from "vitest";
import { DEFAULT_RETRY_POLICY } from "../../../src/core/retry-policy.ts";
import { createApi, createTestTenant } from "../support/api.ts";

const URL = "https://hooks.example.com/in";

test("an endpoint shows every field of the contract, and its secret once", async () => {
  const t = await createTestTenant();
  const { status, body } = await t.api.post("/v1/endpoints", { url: URL });
  expect(status).toBe(201);
  const { secret, ...endpoint } = body;
  expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  expect(endpoint).toEqual({
    id: expect.stringMatching(/^ep_[0-9a-z]{16}$/),
    url: URL,
    name: null,
    revision: 1,
    state: "active",
    ordering_mode: "unordered",
    concurrency_cap: null,
    rate_limit_per_second: null,
    max_head_hold_seconds: null,
    retry_policy: DEFAULT_RETRY_POLICY,
    payload_format: "envelope",
    source_signatures: false,
    headers: {},
    timeout_ms: 15_000,
    on_exhausted: "advance",
    paused_at: null,
    disabled_at: null,
    last_disabled_at: null,
    disabled_reason: null,
    failing_since: null,
    disable_after_failing_seconds: 432_000,
    quarantined_at: null,
    created_at: expect.any(String),
  });
  expect((await t.api.get(`/v1/endpoints/${endpoint.id}`)).body).toEqual(endpoint);
  expect((await t.api.get("/v1/endpoints")).body).toEqual({ data: [endpoint], next_cursor: null });
});

test("an answer without its secret can be sent back as a creation's defaults", async () => {
  const t = await createTestTenant();
  const { status } = await t.api.post("/v1/endpoints", {
    url: URL,
    name: null,
    ordering_mode: "unordered",
    concurrency_cap: null,
    rate_limit_per_second: null,
    max_head_hold_seconds: null,
    retry_policy: null,
    headers: {},
    on_exhausted: "advance",
  });
  expect(status).toBe(201);
});

test("a policy is merged over the default and stored whole", async () => {
  const t = await createTestTenant();
  const { body } = await t.api.post("/v1/endpoints", {
    url: URL,
    retry_policy: { max_attempts: 3, delays_seconds: [0.5] },
  });
  expect(body.retry_policy).toEqual({ ...DEFAULT_RETRY_POLICY, max_attempts: 3, delays_seconds: [0.5] });
});

test.each([
  [{}, "url"],
  [{ url: "not a url" }, "url"],
  [{ url: "https://user:pass@example.com/" }, "url"],
  [{ url: URL, timeout_ms: 999 }, "timeout_ms"],
  [{ url: URL, timeout_ms: 30_001 }, "timeout_ms"],
  [{ url: URL, timeout_ms: 1500.5 }, "timeout_ms"],
  [{ url: URL, payload_format: "xml" }, "payload_format"],
  [{ url: URL, retry_policy: { max_attempts: 0 } }, "retry_policy.max_attempts"],
  [{ url: URL, retry_policy: { retries: 3 } }, "retry_policy.retries"],
  [{ url: URL, name: "" }, "name"],
  [{ url: URL, secret: "whsec_AAAA" }, "secret"],
])("%j is refused and the field named", async (body, path) => {
  const t = await createTestTenant();
  const refused = await t.api.post("/v1/endpoints", body);
  expect(refused).toMatchObject({ status: 422, body: { code: "validation_failed", errors: [{ path }] } });
  expect((await t.api.get("/v1/endpoints")).body.data).toEqual([]);
});

test.each(["envelope", "raw", "cloudevents"])("a payload_format of %s is set, shown and changed", async (format) => {
  const t = await createTestTenant();
  const { body: endpoint } = await t.api.post("/v1/endpoints", { url: URL });
  expect(endpoint.payload_format).toBe("envelope");
  const created = await t.api.post("/v1/endpoints", { url: URL, payload_format: format });
  expect(created).toMatchObject({ status: 201, body: { payload_format: format } });
  const changed = await t.api.patch(`/v1/endpoints/${endpoint.id}`, { payload_format: format });
  expect(changed).toMatchObject({ status: 200, body: { payload_format: format, revision: 2 } });
  expect((await t.api.get(`/v1/endpoints/${endpoint.id}`)).body).toEqual(changed.body);
});

test("a change touches only what it names, and raises the revision", async () => {
  const t = await createTestTenant();
  const { secret: _, ...endpoint } = (await t.api.post("/v1/endpoints", { url: URL, name: "a" })).body;
  const change = { timeout_ms: 2000, payload_format: "raw" };
  expect((await t.api.patch(`/v1/endpoints/${endpoint.id}`, change)).body).toEqual({
    ...endpoint,
    ...change,
    revision: 2,
  });
  expect((await t.api.patch(`/v1/endpoints/${endpoint.id}`, { name: null })).body.name).toBeNull();
  expect((await t.api.patch(`/v1/endpoints/${endpoint.id}`, { url: "nonsense" })).status).toBe(422);
});

test("a change of policy goes over the present one, and null goes back to the default", async () => {
  const t = await createTestTenant();
  const { body: endpoint } = await t.api.post("/v1/endpoints", { url: URL, retry_policy: { max_attempts: 3 } });
  const path = `/v1/endpoints/${endpoint.id}`;
  const changed = await t.api.patch(path, { retry_policy: { jitter: 0 }, name: "n" });
  expect(changed.body).toMatchObject({ name: "n", revision: 2 });
  expect(changed.body.retry_policy).toEqual({ ...DEFAULT_RETRY_POLICY, max_attempts: 3, jitter: 0 });
  expect((await t.api.patch(path, { retry_policy: null })).body.retry_policy).toEqual(DEFAULT_RETRY_POLICY);
});

test("changes of one policy at once are all kept", async () => {
  const t = await createTestTenant();
  const { body: endpoint } = await t.api.post("/v1/endpoints", { url: URL });
  const parts = [{ max_attempts: 4 }, { jitter: 0.5 }, { same_error_limit: 9 }, { max_age_seconds: 60 }];
  const path = `/v1/endpoints/${endpoint.id}`;
  const answers = await Promise.all(parts.map((retry_policy) => t.api.patch(path, { retry_policy })));
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  const expected = { ...DEFAULT_RETRY_POLICY, max_attempts: 4, jitter: 0.5, same_error_limit: 9, max_age_seconds: 60 };
  expect((await t.api.get(path)).body.retry_policy).toEqual(expected);
});

test("a disabled endpoint says since when and why; enabling keeps when it last was", async () => {
  const t = await createTestTenant();
  const { body: endpoint } = await t.api.post("/v1/endpoints", { url: URL });
  const path = `/v1/endpoints/${endpoint.id}`;
  const { status, body: disabled } = await t.api.post(`${path}/disable`);
  expect(status).toBe(200);
  expect(disabled).toMatchObject({ state: "disabled", disabled_reason: "operator" });
  expect(disabled.disabled_at).toBe(disabled.last_disabled_at);
  expect((await t.api.get(path)).body).toEqual(disabled);
  expect((await t.api.post(`${path}/enable`)).body).toMatchObject({
    state: "active",
    disabled_at: null,
    last_disabled_at: disabled.disabled_at,
  });
  expect((await createApi(await t.readKey()).post(`${path}/disable`)).status).toBe(403);
  const other = await createTestTenant();
  expect((await other.api.post(`${path}/disable`)).status).toBe(404);
  expect((await other.api.post(`${path}/enable`)).status).toBe(404);
});

test("a deleted endpoint is gone, and its subscriptions with it", async () => {
  const t = await createTestTenant();
  const { body: endpoint } = await t.api.post("/v1/endpoints", { url: URL });
  const { body: subscription } = await t.api.post("/v1/subscriptions", {
    endpoint_id: endpoint.id,
    event_type_pattern: "*",
  });
  const path = `/v1/endpoints/${endpoint.id}`;
  expect((await t.api.delete(path)).status).toBe(204);
  expect((await t.api.get(path)).status).toBe(404);
  expect((await t.api.patch(path, { name: "x" })).status).toBe(404);
  expect((await t.api.patch(path, { retry_policy: { jitter: 0 } })).status).toBe(404);
  expect((await t.api.delete(path)).status).toBe(404);
  expect((await t.api.get(`${path}/secrets`)).status).toBe(404);
  expect((await t.api.post(`${path}/secrets/rotate`, {})).status).toBe(404);
  expect((await t.api.get(`/v1/subscriptions/${subscription.id}`)).status).toBe(404);
});
