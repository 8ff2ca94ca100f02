import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { shardsOf } from "../../../src/compose.ts";
import { createDisabledReport } from "../../../src/storage/ledger/reports/disabled.ts";
import { createTestTenant } from "../support/api.ts";
import { countingEnv, createCost } from "../support/counting.ts";
import { createScene, type Scene } from "../support/scene.ts";
import { HOUR_MS } from "./support.ts";

const DAY_MS = 24 * HOUR_MS;

const disabled = async ({ tenant }: Pick<Scene, "tenant">, query = "") => {
  const answer = await tenant.api.get(`/v1/reports/disabled${query}`);
  expect(answer.status).toBe(200);
  return answer.body;
};

test("what was disabled is listed with why, newest first, and stays when it is enabled again", async () => {
  const scene = await createScene();
  const { api } = scene.tenant;
  const subscription = (await api.get("/v1/subscriptions")).body.data[0].id;
  expect((await disabled(scene)).data).toEqual([]);
  await api.post(`/v1/subscriptions/${subscription}/disable`);
  await scene.db
    .prepare("update subscription set last_disabled_at = last_disabled_at - 10 where id = ?")
    .bind(subscription)
    .run();
  await api.post(`/v1/endpoints/${scene.endpointId}/disable`);
  const [endpoint, sub] = (await disabled(scene)).data;
  expect(endpoint).toEqual({
    endpoint_id: scene.endpointId,
    subscription_id: null,
    last_disabled_at: endpoint.disabled_at,
    disabled_at: expect.any(String),
    disabled_reason: "operator",
  });
  expect(sub).toMatchObject({ endpoint_id: scene.endpointId, subscription_id: subscription, disabled_reason: null });
  await api.post(`/v1/subscriptions/${subscription}/enable`);
  await api.post(`/v1/endpoints/${scene.endpointId}/enable`);
  expect((await disabled(scene)).data).toEqual([
    { ...endpoint, disabled_at: null, disabled_reason: null },
    { ...sub, disabled_at: null },
  ]);
});

test("the window is seven days unless it is said, and what was deleted or is another tenant's is not listed", async () => {
  const [scene, other] = [await createScene(), await createScene()];
  await other.tenant.api.post(`/v1/endpoints/${other.endpointId}/disable`);
  expect((await disabled(scene)).data).toEqual([]);
  await scene.tenant.api.post(`/v1/endpoints/${scene.endpointId}/disable`);
  const { window, complete } = await disabled(scene);
  expect([Date.parse(window.until) - Date.parse(window.from), complete]).toEqual([7 * DAY_MS, true]);
  await scene.db
    .prepare("update endpoint set last_disabled_at = ? where id = ?")
    .bind(Date.now() - 8 * DAY_MS, scene.endpointId)
    .run();
  expect((await disabled(scene)).data).toEqual([]);
  expect((await disabled(scene, "?window=9d")).data).toHaveLength(1);
  await scene.tenant.api.delete(`/v1/endpoints/${scene.endpointId}`);
  expect((await disabled(scene, "?window=9d")).data).toEqual([]);
});

test("more than it lists is told: it lists the newest, all of them since complete_from", async () => {
  const tenant = await createTestTenant();
  const { db } = await createScene();
  const scene = await createScene();
  for (let n = 0; n < 3; n++) {
    await scene.tenant.api.post("/v1/subscriptions", { endpoint_id: scene.endpointId, event_type_pattern: `a.b${n}` });
  }
  await scene.db
    .prepare(
      "update subscription set disabled_at = ?1, last_disabled_at = ?1 + (rank - 1) from (select id as of, row_number() over (order by id) as rank from subscription where tenant_id = ?2) where id = of and tenant_id = ?2",
    )
    .bind(1_000, scene.tenant.id)
    .run();
  const listed = await createDisabledReport(scene.db, 2).listDisabled(scene.tenant.id, 0);
  expect(listed.completeFrom).toBe(1_002);
  expect(listed.data.map(({ lastDisabledAt }) => lastDisabledAt)).toEqual([1_003, 1_002]);
  expect(await createDisabledReport(db).listDisabled(tenant.id, 0)).toEqual({ data: [], completeFrom: 0 });
});

test("how many endpoints and subscriptions there are besides makes no difference to what is read", async () => {
  const scene = await createScene();
  await scene.tenant.api.post(`/v1/endpoints/${scene.endpointId}/disable`);
  await scene.db
    .prepare(
      `insert into subscription (tenant_id, id, endpoint_id, event_type_pattern, created_at)
       with recursive n(i) as (select 0 union all select i + 1 from n where i < 2000)
       select ?1, 'sub_' || printf('%016d', i), ?2, 'nothing.matches', 0 from n`,
    )
    .bind(scene.tenant.id, scene.endpointId)
    .run();
  const cost = createCost();
  const db = shardsOf(countingEnv(env as Env, cost)).get(scene.tenant.shard)!;
  const { data } = await createDisabledReport(db).listDisabled(scene.tenant.id, 0);
  expect(data).toHaveLength(1);
  expect(cost.rowsRead).toBeLessThan(20);
});
