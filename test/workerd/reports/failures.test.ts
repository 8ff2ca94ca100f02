import { expect, onTestFinished, test } from "vitest";
import { createFailuresReport } from "../../../src/storage/ledger/reports/failures.ts";
import { createApi, createTestTenant, operatorToken } from "../support/api.ts";
import { answered, claim, report } from "../support/closing.ts";
import { recordAttempt } from "../../../src/app/deliver/record-attempt.ts";
import { createScene, empty, type Scene } from "../support/scene.ts";
import { HOUR_MS, MINUTE_MS, record, recordDead } from "./support.ts";

const failures = async ({ tenant }: Scene, query = "") => {
  const answer = await tenant.api.get(`/v1/reports/failures${query}`);
  expect(answer.status).toBe(200);
  return answer.body;
};

async function sceneOf(...args: Parameters<typeof createScene>): Promise<Scene> {
  const scene = await createScene(...args);
  onTestFinished(() => empty(scene));
  return scene;
}

const iso = (time: number) => new Date(time).toISOString();

test("a tenant without failures has an answer that is empty and complete", async () => {
  const tenant = await createTestTenant();
  const { status, body } = await tenant.api.get("/v1/reports/failures");
  expect(status).toBe(200);
  expect(body).toEqual({
    data: [],
    window: { from: expect.any(String), until: expect.any(String) },
    complete: true,
    complete_from: body.window.from,
    groups: 0,
  });
  expect(Date.parse(body.window.until) - Date.parse(body.window.from)).toBe(HOUR_MS);
});

test("a request that failed is counted as it is on record, also once its delivery has succeeded", async () => {
  const scene = await sceneOf();
  const delivery = await scene.publishOne();
  await claim(scene, delivery, 1, "a");
  await recordAttempt(scene.deps, report(delivery, 1, "a", answered(503)));
  const expected = {
    subscription_id: (await delivery.read()).subscription_id,
    endpoint_id: scene.endpointId,
    error_class: "http_5xx",
    final_outcome: null,
    deliveries: 1,
    attempts: 1,
    ended: 0,
    example_delivery_id: delivery.id,
  };
  expect((await failures(scene)).data).toEqual([expect.objectContaining(expected)]);
  await scene.tenant.api.post(`/v1/deliveries/${delivery.id}/retry`);
  await claim(scene, delivery, 2, "b");
  await recordAttempt(scene.deps, report(delivery, 2, "b", answered(200)));
  expect((await delivery.read()).status).toBe("succeeded");
  expect((await failures(scene)).data).toEqual([expect.objectContaining(expected)]);
});

test("a delivery counts once in a class and once in each class, with all its requests, and its end", async () => {
  const scene = await sceneOf();
  const now = Date.now();
  const at = (minutes: number) => now - minutes * MINUTE_MS;
  const [first, second] = await record(scene, [
    {
      status: "dead_letter",
      terminalAt: at(10),
      lastErrorClass: "http_5xx",
      attempts: [
        { at: at(40), errorClass: "timeout" },
        { at: at(30), errorClass: "http_5xx" },
        { at: at(11), errorClass: "http_5xx" },
      ],
    },
    { status: "pending", lastErrorClass: "http_5xx", attempts: [{ at: at(5), errorClass: "http_5xx" }] },
  ]);
  const { data, groups } = await failures(scene);
  expect(groups).toBe(2);
  expect(data).toEqual([
    expect.objectContaining({
      error_class: "http_5xx",
      deliveries: 2,
      attempts: 3,
      ended: 1,
      first_at: iso(at(30)),
      last_at: iso(at(5)),
      example_delivery_id: second,
    }),
    expect.objectContaining({
      error_class: "timeout",
      deliveries: 1,
      attempts: 1,
      ended: 0,
      first_at: iso(at(40)),
      last_at: iso(at(40)),
      example_delivery_id: first,
    }),
  ]);
});

test("faults of the relay, requests under way and test sends are not counted, and no end is lost for it", async () => {
  const scene = await sceneOf();
  const now = Date.now();
  await record(scene, [
    { status: "succeeded", attempts: [{ at: now - 9, errorClass: "internal" }, { at: now - 8 }] },
    { status: "processing", attempts: [{ at: now - 9, outcomeClass: null }] },
    {
      status: "dead_letter",
      finalOutcome: "abandoned",
      terminalAt: now - 5,
      lastErrorClass: "abandoned",
      attempts: [{ at: now - 9, errorClass: "abandoned", outcomeClass: "unreachable" }],
    },
  ]);
  await scene.tenant.api.post(`/v1/endpoints/${scene.endpointId}/test`);
  const spoilt = await scene.db
    .prepare(
      "update attempt set outcome_class = 'transient', error_class = 'http_5xx' where worker_id like '%.test' and tenant_id = ?",
    )
    .bind(scene.tenant.id)
    .run();
  expect(spoilt.meta.changes).toBe(1);
  expect((await failures(scene)).data).toEqual([
    expect.objectContaining({ error_class: null, final_outcome: "abandoned", deliveries: 1, attempts: 0, ended: 1 }),
  ]);
});

test("what ended without a request, or on one before the window, is counted by why it ended, or by its last error", async () => {
  const scene = await sceneOf();
  const now = Date.now();
  await scene.tenant.api.post(`/v1/endpoints/${scene.endpointId}/disable`);
  const born = await scene.publishOne();
  await record(scene, [
    {
      status: "expired",
      finalOutcome: "expired",
      terminalAt: now - 1_000,
      lastErrorClass: "connect",
      attempts: [{ at: now - 5 * HOUR_MS, errorClass: "connect" }],
    },
    { status: "cancelled", finalOutcome: "cancelled", terminalAt: now - 1_000 },
    {
      status: "failed",
      finalOutcome: "destination_blocked",
      lastErrorClass: "blocked_destination",
      terminalAt: now - 1_000,
    },
  ]);
  const { data } = await failures(scene);
  expect(data).toHaveLength(3);
  expect(data).toContainEqual(
    expect.objectContaining({ error_class: null, final_outcome: "endpoint_disabled", example_delivery_id: born.id }),
  );
  expect(data).toContainEqual(
    expect.objectContaining({ error_class: "connect", deliveries: 1, attempts: 0, ended: 1 }),
  );
  expect(data).toContainEqual(expect.objectContaining({ error_class: "blocked_destination", attempts: 0, ended: 1 }));
});

test("the window decides by when requests began and deliveries ended, and is as long as is asked for", async () => {
  const scene = await sceneOf();
  const now = Date.now();
  await record(scene, [
    {
      status: "pending",
      attempts: [
        { at: now - 3 * HOUR_MS, errorClass: "http_5xx" },
        { at: now - 90 * MINUTE_MS, errorClass: "http_5xx" },
      ],
    },
  ]);
  expect((await failures(scene)).data).toEqual([]);
  expect((await failures(scene, "?window=2h")).data).toEqual([expect.objectContaining({ deliveries: 1, attempts: 1 })]);
  expect((await failures(scene, "?window=365d")).data).toEqual([
    expect.objectContaining({ deliveries: 1, attempts: 2 }),
  ]);
});

test("its very edge belongs to the window", async () => {
  const scene = await sceneOf();
  const now = Date.now();
  await record(scene, [{ status: "pending", attempts: [{ at: now - 5_000, errorClass: "dns" }] }]);
  const ledger = createFailuresReport(scene.db);
  expect((await ledger.countFailures(scene.tenant.id, now - 5_000, now)).data).toHaveLength(1);
  expect((await ledger.countFailures(scene.tenant.id, now - 4_999, now)).data).toEqual([]);
});

test("what has expired is not counted, and neither is another tenant's", async () => {
  const [scene, other] = [await sceneOf(), await sceneOf()];
  const now = Date.now();
  const failed = { status: "dead_letter", terminalAt: now - 5, lastErrorClass: "tls" };
  await record(scene, [{ ...failed, expiresAt: now - 1, attempts: [{ at: now - 10, errorClass: "tls" }] }]);
  await record(other, [{ ...failed, attempts: [{ at: now - 10, errorClass: "tls" }] }]);
  expect((await failures(scene)).data).toEqual([]);
  expect((await failures(other)).data).toHaveLength(1);
});

test("more than it looks at is told: what is counted is all there is since complete_from", async () => {
  const scene = await sceneOf();
  const now = Date.now();
  await recordDead(scene, 1_000, now);
  const ledger = createFailuresReport(scene.db, 100);
  const { data, completeFrom } = await ledger.countFailures(scene.tenant.id, now - HOUR_MS, now);
  expect(completeFrom).toBeGreaterThan(now - HOUR_MS);
  const exact = createFailuresReport(scene.db);
  expect(await exact.countFailures(scene.tenant.id, completeFrom, now)).toEqual({ data, completeFrom, groups: 1 });
  // What it stopped at is not counted in part.
  expect(data[0]!.deliveries).toBeLessThan(100);
  expect(data[0]!.deliveries).toBeGreaterThan(90);
  const all = await exact.countFailures(scene.tenant.id, now - HOUR_MS, now);
  expect(all).toMatchObject({
    completeFrom: now - HOUR_MS,
    data: [{ deliveries: 1_000, attempts: 1_000, ended: 1_000 }],
  });
});

test("who may ask, and how", async () => {
  const scene = await sceneOf();
  await record(scene, [{ terminalAt: Date.now() }]);
  const { data } = await failures(scene);
  expect(data).toHaveLength(1);
  for (const report of ["failures", "dead-letters", "disabled"]) {
    const path = `/v1/reports/${report}`;
    const own = await scene.tenant.api.get(path);
    expect((await createApi(await scene.tenant.readKey()).get(path)).body.data).toEqual(own.body.data);
    const operator = createApi(operatorToken, { "X-Tenant-Id": scene.tenant.id });
    expect((await operator.get(path)).body.data).toEqual(own.body.data);
    const source = (await scene.tenant.api.get("/v1/sources")).body.data[0].id;
    expect((await createApi(await scene.tenant.publishKey(source)).get(path)).body.code).toBe("forbidden");
    expect((await createApi(null).get(path)).status).toBe(401);
    for (const query of [
      "?window=1",
      "?window=0m",
      "?window=366d",
      "?window=-1h",
      "?window=1w",
      "?since=1",
      "?limit=5",
    ]) {
      const refused = await scene.tenant.api.get(path + query);
      expect([query, refused.status, refused.body.code]).toEqual([query, 422, "validation_failed"]);
    }
    expect((await scene.tenant.api.get(`${path}?window=1h&window=2h`)).body.code).toBe("duplicate_field");
    expect((await scene.tenant.api.post(path, {})).status).toBe(405);
  }
});
