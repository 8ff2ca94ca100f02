import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { testEndpoint } from "../../../src/app/endpoint/test-endpoint.ts";
import type { ShardDeps } from "../../../src/app/deps.ts";
import { createWatchState, tick, type WatchDeps } from "../../../src/app/watch/tick.ts";
import { parseDeliveryId } from "../../../src/core/ids.ts";
import { createLaneFixture } from "../lane/support.ts";
import { createApi, operatorToken, type TestTenant } from "../support/api.ts";
import { createScene, type Scene } from "../support/scene.ts";
import { createWatchdog, EVERYTHING } from "../support/watch.ts";
import { attempt, shardDeps } from "../support/worker.ts";

const requests: { url: string; headers: Headers; body: string }[] = [];
let status = 200;
beforeEach(() => {
  requests.length = 0;
  status = 200;
  vi.spyOn(globalThis, "fetch").mockImplementation(async (url, init) => {
    const body = new TextDecoder().decode(init!.body as Uint8Array);
    requests.push({ url: String(url), headers: new Headers(init!.headers), body });
    return new Response("ok", { status, headers: { "X-Request-Id": "partner-1" } });
  });
});
afterEach(() => vi.restoreAllMocks());

const testSend = ({ tenant, endpointId }: Pick<Scene, "tenant" | "endpointId">) =>
  tenant.api.post(`/v1/endpoints/${endpointId}/test`);
const read = async ({ tenant }: { tenant: TestTenant }, path: string) => (await tenant.api.get(`/v1/${path}`)).body;
const admin = ({ tenant }: Scene) => ({ tenantId: tenant.id, scope: "admin" as const, sourceId: null });

/** All that a test send could leave on record. */
async function countRows({ db, tenant }: Scene): Promise<unknown> {
  const tables = ["event", "delivery", "attempt", "source", "subscription", "retry_policy"];
  const counts = tables.map((table) => `(select count(*) from ${table} where tenant_id = ?1) as ${table}`);
  return db
    .prepare(`select ${counts.join(", ")}`)
    .bind(tenant.id)
    .first();
}

/** Runs a test send whose worker dies while its request is out; its delivery. */
async function dieInTest(scene: Scene, deps: ShardDeps = shardDeps(scene.tenant, scene.context)): Promise<string> {
  const sender = { ...deps.testSender(), send: () => new Promise<never>(() => {}) };
  void testEndpoint({ ...deps, testSender: () => sender, background: () => {} }, admin(scene), scene.endpointId, null);
  const sql = "select event_id from attempt where tenant_id = ? and endpoint_id = ? and worker_id like '%.test'";
  const findEvent = () => scene.db.prepare(sql).bind(scene.tenant.id, scene.endpointId).first<string>("event_id");
  await expect.poll(findEvent).not.toBeNull();
  return `dlv_${(await findEvent())!.slice(4)}${scene.endpointId.slice(3)}`;
}

test("a test send answers its attempt, which is on record with its delivery and event like any other", async () => {
  const scene = await createScene();
  const { status: answered, body } = await testSend(scene);
  expect(answered).toBe(200);
  expect(body).toMatchObject({
    attempt_number: 1,
    status_code: 200,
    outcome_class: "success",
    error_class: null,
    partner_request_id: "partner-1",
    worker_id: expect.stringMatching(/\.test$/),
    relay_region: "local",
  });
  const delivery = await read(scene, `deliveries/${body.delivery_id}`);
  expect(delivery).toMatchObject({ status: "succeeded", final_outcome: "delivered", attempts: [body] });
  expect(delivery.retry_policy.max_attempts).toBe(1);
  const event = await read(scene, `events/${delivery.event_id}`);
  expect(event).toMatchObject({ type: "hooklane.test", delivery_count: 1, idempotency_key: null });
  expect((await read(scene, "events?type=hooklane.test")).data).toEqual([event]);
  expect((await read(scene, "deliveries?event_type=hooklane.test")).data).toHaveLength(1);

  expect(requests).toHaveLength(1);
  const { headers, body: sent } = requests[0]!;
  expect(headers.get("X-Webhook-Event-Type")).toBe("hooklane.test");
  expect(headers.get("X-Webhook-Source")).toBe("hooklane");
  expect(headers.get("webhook-id")).toBe(delivery.idempotency_key);
  expect(headers.get("webhook-signature")).toMatch(/^v1,/);
  expect(JSON.parse(sent)).toMatchObject({
    id: event.id,
    type: "hooklane.test",
    source: "hooklane",
    payload: { test: true },
  });
  const { status: stored } = await scene.tenant.api.get(`/v1/events/${event.id}/payload`);
  expect(stored).toBe(200);
});

test("nobody else gets it, and what it names is listed nowhere and takes no room", async () => {
  const scene = await createScene();
  const other = await scene.tenant.api.post("/v1/endpoints", { url: "https://other.example/hook" });
  for (const event_type_pattern of ["*", "hooklane.*"]) {
    await scene.tenant.api.post("/v1/subscriptions", { endpoint_id: other.body.id, event_type_pattern });
  }
  const before = [await read(scene, "sources"), await read(scene, "subscriptions")];
  const { body } = await testSend(scene);
  await testSend(scene);
  const { event_id, subscription_id } = await read(scene, `deliveries/${body.delivery_id}`);
  expect((await read(scene, `deliveries?event_id=${event_id}`)).data).toHaveLength(1);
  expect((await read(scene, `deliveries?endpoint_id=${other.body.id}`)).data).toEqual([]);
  expect([await read(scene, "sources"), await read(scene, "subscriptions")]).toEqual(before);
  const { source_id } = await read(scene, `events/${event_id}`);
  for (const path of [`sources/${source_id}`, `subscriptions/${subscription_id}`]) {
    expect((await scene.tenant.api.get(`/v1/${path}`)).status).toBe(404);
  }
  expect(
    (await scene.tenant.api.post("/v1/events", { type: "hooklane.test", source: "orders", payload: 1 })).status,
  ).toBe(422);
});

test.each([
  [503, "transient", "exhausted"],
  [400, "rejected", "rejected"],
  [410, "rejected", "gone"],
])(
  "a test that is answered %d is not tried again, and disables nothing",
  async (answer, outcomeClass, finalOutcome) => {
    status = answer;
    const scene = await createScene();
    const endpoint = await read(scene, `endpoints/${scene.endpointId}`);
    const { body } = await testSend(scene);
    expect(body).toMatchObject({ status_code: answer, outcome_class: outcomeClass });
    expect(await read(scene, `deliveries/${body.delivery_id}`)).toMatchObject({
      status: "dead_letter",
      final_outcome: finalOutcome,
      attempt_count: 1,
      next_attempt_at: null,
    });
    expect(await read(scene, `endpoints/${scene.endpointId}`)).toEqual(endpoint);
    expect(requests).toHaveLength(1);
  },
);

test.each(["pause", "disable"])("an endpoint is tested in spite of a %s, and stays as it was", async (action) => {
  const scene = await createScene({ ordering_mode: "strict", on_exhausted: "block", rate_limit_per_second: 1 });
  await scene.tenant.api.post(`/v1/endpoints/${scene.endpointId}/${action}`);
  const endpoint = await read(scene, `endpoints/${scene.endpointId}`);
  status = 500;
  const answers = await Promise.all([testSend(scene), testSend(scene), testSend(scene)]);
  expect(answers.map(({ body }) => body.status_code)).toEqual([500, 500, 500]);
  expect(await read(scene, `endpoints/${scene.endpointId}`)).toEqual(endpoint);
  expect(await read(scene, `endpoints/${scene.endpointId}/lane`)).toMatchObject({ depth: 0, heads: [] });
});

test("a test under way is in nobody's way, and when its worker dies it ends without another request", async () => {
  const fixture = await createLaneFixture({ ordering_mode: "unordered", on_exhausted: "block" });
  const id = await dieInTest(fixture);
  const ref = parseDeliveryId(id);
  if (!ref.ok) throw new Error(id);
  await attempt(fixture.deps, fixture.context, { tenantId: fixture.tenant.id, deliveryId: id, attemptNumber: 2 });
  for (const action of ["retry", "cancel"]) {
    expect((await fixture.tenant.api.post(`/v1/deliveries/${id}/${action}`)).status).toBe(409);
  }
  // It is not moved into a lane by a change of mode, so the lane does not wait for it.
  await fixture.tenant.api.patch(`/v1/endpoints/${fixture.endpointId}`, { ordering_mode: "strict" });
  await fixture.publishAll(["k/0", "k/1"]);
  await fixture.createLane().run();
  expect(fixture.sent.map(({ name }) => name)).toEqual(["k/0", "k/1"]);
  expect(await read(fixture, `deliveries/${id}`)).toMatchObject({ status: "processing", attempt_count: 1 });

  const { real, idle, mine } = createWatchdog(fixture);
  const rung: unknown[] = [];
  let aheadMs = 0;
  const watch: WatchDeps = {
    ...idle,
    now: () => Date.now() + aheadMs,
    listExpiredLeases: async (now) => mine(await real.listExpiredLeases(now, EVERYTHING)),
    ringLater: (calls) => void rung.push(...calls),
    wakeLane: () => {},
  };
  await tick(watch, createWatchState(Date.now()));
  expect(await read(fixture, `deliveries/${id}`)).toMatchObject({ status: "processing" });
  aheadMs = 46_000;
  await tick(watch, createWatchState(Date.now()));
  expect(rung).toEqual([]);
  expect(await read(fixture, `deliveries/${id}`)).toMatchObject({
    status: "dead_letter",
    final_outcome: "abandoned",
    attempts: [{ outcome_class: "unreachable", error_class: "abandoned" }],
  });
  expect((await read(fixture, `endpoints/${fixture.endpointId}/lane`)).state).toBe("idle");
  expect(requests).toHaveLength(0);
});

test("the endpoint as it is when the attempt is recorded is what is tested", async () => {
  const scene = await createScene();
  const deps = shardDeps(scene.tenant, scene.context);
  let loads = 0;
  const { attempt: made } = await testEndpoint(
    {
      ...deps,
      async loadTestTarget(tenantId, endpointId) {
        const target = await deps.loadTestTarget(tenantId, endpointId);
        const moved = { url: "https://moved.example/hook" };
        if (loads++ === 0) await scene.tenant.api.patch(`/v1/endpoints/${endpointId}`, moved);
        return target;
      },
    },
    admin(scene),
    scene.endpointId,
    null,
  );
  expect(requests.map(({ url }) => url)).toEqual(["https://moved.example/hook"]);
  expect(made.endpointRevision).toBe(2);
  await scene.context.settled();
});

test("once a suspension has answered no test starts, though its endpoint was read before; a deleted one is 404", async () => {
  const scene = await createScene();
  const deps = shardDeps(scene.tenant, scene.context);
  const before = await countRows(scene);
  const suspend = () => createApi(operatorToken).patch(`/v1/tenants/${scene.tenant.id}`, { status: "suspended" });
  const late = {
    ...deps,
    async loadTestTarget(tenantId: string, endpointId: string) {
      const target = await deps.loadTestTarget(tenantId, endpointId);
      await suspend();
      return target;
    },
  };
  await expect(testEndpoint(late, admin(scene), scene.endpointId, null)).rejects.toMatchObject({
    code: "tenant_suspended",
  });
  expect(await testSend(scene)).toMatchObject({ status: 403, body: { code: "tenant_suspended" } });
  await scene.tenant.api.delete(`/v1/endpoints/${scene.endpointId}`);
  expect((await testSend(scene)).status).toBe(404);
  expect(await countRows(scene)).toEqual(before);
  expect(requests).toHaveLength(0);
});

test("what the relay would not send to is refused, without a request or a row", async () => {
  const scene = await createScene();
  const deps = shardDeps(scene.tenant, scene.context);
  const before = await countRows(scene);
  const strict = { ...deps.testSender(), destinationRules: { ...deps.destinationRules, allowPrivate: false } };
  const sql = "update endpoint set url = 'https://169.254.169.254/' where id = ?";
  await scene.db.prepare(sql).bind(scene.endpointId).run();
  const work = testEndpoint({ ...deps, testSender: () => strict }, admin(scene), scene.endpointId, null);
  await expect(work).rejects.toMatchObject({ code: "destination_blocked" });
  expect(await countRows(scene)).toEqual(before);
  expect(requests).toHaveLength(0);
});

test("an insert whose answer was lost is done again and changes nothing: one request", async () => {
  const scene = await createScene();
  const deps = shardDeps(scene.tenant, scene.context);
  let lost = 0;
  const { delivery } = await testEndpoint(
    {
      ...deps,
      async insertTestSend(...args) {
        const stored = await deps.insertTestSend(...args);
        if (lost++ === 0) throw new Error("Network connection lost.");
        return stored;
      },
    },
    admin(scene),
    scene.endpointId,
    null,
  );
  expect(delivery).toMatchObject({ status: "succeeded", attemptCount: 1 });
  expect(requests).toHaveLength(1);
  await scene.context.settled();
});

test("a replay of a test is a delivery like any other", async () => {
  status = 503;
  const scene = await createScene({ retry_policy: { delays_seconds: [3600] } });
  const { body } = await testSend(scene);
  const { body: replay } = await scene.tenant.api.post(`/v1/deliveries/${body.delivery_id}/replay`);
  expect(replay).toMatchObject({ replay_of: body.delivery_id, retry_policy: { max_attempts: 10 } });
  await expect.poll(async () => (await read(scene, `deliveries/${replay.id}`)).attempt_count).toBe(1);
  await expect.poll(async () => (await read(scene, `deliveries/${replay.id}`)).status).toBe("pending");
  await scene.tenant.api.post(`/v1/deliveries/${replay.id}/cancel`);
});
