import { expect, test } from "vitest";
import { createFiltersReport } from "../../../src/storage/ledger/reports/filters.ts";
import { createTestTenant } from "../support/api.ts";
import { explain } from "../support/plans.ts";
import { createScene, empty, type Scene } from "../support/scene.ts";
import { createTestContext, publish, shardDeps } from "../support/worker.ts";
import { seed } from "./ledger.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

const filters = async ({ tenant }: Pick<Scene, "tenant">, query = "") => {
  const answer = await tenant.api.get(`/v1/reports/filters${query}`);
  expect(answer.status).toBe(200);
  return answer.body;
};

test("filters are told apart by subscription, the one with the slowest 95th percentile first", async () => {
  const scene = await createScene();
  const { api } = scene.tenant;
  const [first] = (await api.get("/v1/subscriptions")).body.data;
  const { body: endpoint } = await api.post("/v1/endpoints", { url: "https://other.example/hook" });
  const { body: second } = await api.post("/v1/subscriptions", { endpoint_id: endpoint.id, event_type_pattern: "a.b" });
  const at = Date.now() - MINUTE_MS;
  await seed(
    scene,
    Array.from({ length: 20 }, (_, i) => ({
      at: at + i,
      deliveries: [
        { filterSteps: i + 1, filterMs: i < 10 ? null : i / 8 },
        { endpointId: endpoint.id, subscriptionId: second.id, filterSteps: 7 },
        ...(i === 0 ? [{ replayNo: 1, filterSteps: null }] : []),
      ],
    })),
  );
  const report = await filters(scene);
  expect(report).toMatchObject({ complete: true, groups: 2 });
  expect(report.data).toEqual([
    {
      subscription_id: first.id,
      endpoint_id: scene.endpointId,
      filter_match_steps: { count: 20, p50: 10, p95: 19, p99: 20, max: 20 },
      filter_match_ms: { count: 10, p50: 14 / 8, p95: 19 / 8, p99: 19 / 8, max: 19 / 8 },
    },
    {
      subscription_id: second.id,
      endpoint_id: endpoint.id,
      filter_match_steps: { count: 20, p50: 7, p95: 7, p99: 7, max: 7 },
      filter_match_ms: { count: 0, p50: null, p95: null, p99: null, max: null },
    },
  ]);
  const now = Date.now();
  const some = await createFiltersReport(scene.db, 9).measureFilters(scene.tenant.id, now - DAY_MS, now);
  expect(some).toMatchObject({
    completeFrom: at + 16,
    data: [{ steps: { count: 4, max: 20 } }, { steps: { count: 4 } }],
  });
});

test("what a publish made of a filter is what the report says, and who has none is not in it", async () => {
  const scene = await createScene();
  const { body: endpoint } = await scene.tenant.api.post("/v1/endpoints", { url: "https://other.example/hook" });
  await scene.tenant.api.post("/v1/subscriptions", {
    endpoint_id: endpoint.id,
    event_type_pattern: "*",
    filter: "payload.n == 1",
  });
  const { id } = await publish(shardDeps(scene.tenant, createTestContext()), scene.tenant, {
    type: "order.created",
    source: "orders",
  });
  const { body } = await scene.tenant.api.get(`/v1/deliveries?event_id=${id}&endpoint_id=${endpoint.id}`);
  const steps = body.data[0].filter_match_steps;
  expect(steps).toBeGreaterThan(0);
  const report = await filters(scene);
  expect(report.data.map((row: any) => [row.endpoint_id, row.filter_match_steps.max])).toEqual([[endpoint.id, steps]]);
  await empty(scene);
});

test("nothing expired, before the window or of another tenant is in it", async () => {
  const scene = await createScene();
  const now = Date.now();
  await seed(scene, [
    { at: now - MINUTE_MS, expiresAt: now - 1, deliveries: [{ filterSteps: 5 }] },
    { at: now - 90 * MINUTE_MS, deliveries: [{ filterSteps: 5 }] },
  ]);
  expect(await filters(scene)).toMatchObject({ data: [], groups: 0, complete: true });
  expect((await filters(scene, "?window=2h")).data).toHaveLength(1);
  expect((await filters({ tenant: await createTestTenant() }, "?window=2h")).data).toEqual([]);
});

test("deliveries are walked by their key only", async () => {
  const scene = await createScene();
  const plan = await explain(scene.db, (db) => createFiltersReport(db).measureFilters(scene.tenant.id, 0, Date.now()));
  expect(plan.filter((step) => /^(SCAN|SEARCH) (attempt|event|delivery)\b/.test(step))).toEqual([
    "SEARCH delivery USING PRIMARY KEY (tenant_id=? AND event_id>?)",
  ]);
});
