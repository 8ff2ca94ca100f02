import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { shardsOf } from "../../../src/compose.ts";
import { createApi, createTestTenant, operatorToken, type TestTenant } from "../support/api.ts";

const operator = createApi(operatorToken);
const URL = "https://hooks.example.com/in";

const changeTenant = async (t: TestTenant, changes: Record<string, unknown>) => {
  const { status, body } = await operator.patch(`/v1/tenants/${t.id}`, changes);
  expect(status).toBe(200);
  return body;
};
const createEndpoint = (t: TestTenant, fields = {}) => t.api.post("/v1/endpoints", { url: URL, ...fields });
const dbOf = (t: TestTenant) => shardsOf(env as Env).get(t.shard)!;
const full = { status: 409, body: { code: "quota_exceeded", status: 409 } };

/** Everything that a creation could leave behind. */
async function countRows(t: TestTenant): Promise<unknown> {
  const count = (table: string) => `(select count(*) from ${table} where tenant_id = ?1) as ${table}`;
  const tables = ["endpoint", "signing_secret", "retry_policy", "source", "subscription", "api_key"].map(count);
  const sql = `select revision, ${tables.join(", ")} from tenant where id = ?1`;
  return dbOf(t).prepare(sql).bind(t.id).first();
}

test("of fifty creations at once where there is room for one, one is made, and the others leave nothing", async () => {
  const t = await createTestTenant();
  await changeTenant(t, { endpoint_quota: 3 });
  await createEndpoint(t);
  await createEndpoint(t);
  const before = (await countRows(t)) as Record<string, number>;
  const answers = await Promise.all(
    // Each with a policy of its own, which would be a row.
    Array.from({ length: 50 }, (_, n) => createEndpoint(t, { retry_policy: { max_age_seconds: 100 + n } })),
  );
  const made = answers.filter(({ status }) => status === 201);
  expect(made).toHaveLength(1);
  for (const answer of answers) if (answer.status !== 201) expect(answer).toMatchObject(full);
  expect((await t.api.get("/v1/endpoints")).body.data).toHaveLength(3);
  expect(await countRows(t)).toEqual({
    ...before,
    revision: before["revision"]! + 1,
    endpoint: 3,
    signing_secret: 3,
    retry_policy: before["retry_policy"]! + 1,
  });
});

test("a deleted endpoint makes room; a paused and a disabled one do not", async () => {
  const t = await createTestTenant();
  await changeTenant(t, { endpoint_quota: 2 });
  const [first, second] = [(await createEndpoint(t)).body, (await createEndpoint(t)).body];
  await t.api.post(`/v1/endpoints/${first.id}/disable`);
  await t.api.post(`/v1/endpoints/${second.id}/pause`);
  expect(await createEndpoint(t)).toMatchObject(full);
  await t.api.delete(`/v1/endpoints/${first.id}`);
  expect((await createEndpoint(t)).status).toBe(201);
  expect(await createEndpoint(t)).toMatchObject(full);
});

test("a quota below what there is takes nothing away and stops new ones; without one the plan's holds", async () => {
  const t = await createTestTenant();
  const made = [(await createEndpoint(t)).body, (await createEndpoint(t)).body];
  expect(await changeTenant(t, { endpoint_quota: 1 })).toMatchObject({ endpoint_quota: 1 });
  expect(await createEndpoint(t)).toMatchObject(full);
  expect((await t.api.get("/v1/endpoints")).body.data).toHaveLength(2);
  expect((await t.api.patch(`/v1/endpoints/${made[0].id}`, { name: "still mine" })).status).toBe(200);
  await changeTenant(t, { endpoint_quota: 0, plan: "enterprise" });
  expect(await createEndpoint(t)).toMatchObject(full);
  expect(await changeTenant(t, { endpoint_quota: null })).toMatchObject({ endpoint_quota: null });
  expect((await createEndpoint(t)).status).toBe(201);
});

test.each([
  ["free", Number(env.ENDPOINT_QUOTA_FREE)],
  ["pro", Number(env.ENDPOINT_QUOTA_PRO)],
])("a tenant of plan %s has room for %d endpoints", async (plan, quota) => {
  const t = await createTestTenant();
  await changeTenant(t, { plan });
  const { body: one } = await createEndpoint(t);
  const sql = `with recursive n(i) as (select 1 union all select i + 1 from n where i < ?3)
    insert into endpoint (tenant_id, id, url, retry_policy_id, created_at)
    select e.tenant_id, 'ep_n' || printf('%015d', n.i), e.url, e.retry_policy_id, 0
    from n cross join endpoint e where e.tenant_id = ?1 and e.id = ?2`;
  await dbOf(t)
    .prepare(sql)
    .bind(t.id, one.id, quota - 2)
    .run();
  expect((await createEndpoint(t)).status).toBe(201);
  expect(await createEndpoint(t)).toMatchObject(full);
});

test("a tenant is made with the quota that was asked for", async () => {
  const made = await operator.post("/v1/tenants", { name: "x", plan: "pro", endpoint_quota: 7 });
  expect(made).toMatchObject({ status: 201, body: { plan: "pro", endpoint_quota: 7 } });
  expect((await operator.get(`/v1/tenants/${made.body.id}`)).body).toEqual(made.body);
});

// 1,000 sources, 10,000 subscriptions and 1,000 API keys that are neither deleted nor revoked.
test.each([
  [
    "sources",
    999,
    `insert into source (tenant_id, id, name, created_at) select ?1, 'src_' || n.i, 'n' || n.i, 0 from n`,
    { name: "wanted" },
    { name: "too-many" },
  ],
  [
    "subscriptions",
    9_999,
    `insert into subscription (tenant_id, id, endpoint_id, event_type_pattern, created_at)
     select ?1, 'sub_' || n.i, (select id from endpoint where tenant_id = ?1), 'a', 0 from n`,
    { event_type_pattern: "a" },
    { event_type_pattern: "b", retry_policy: { max_attempts: 3 } },
  ],
  [
    "api-keys",
    // One is the tenant's first.
    998,
    `insert into api_key (tenant_id, id, key_hash, prefix, scope, created_at)
     select ?1, 'key_' || n.i, cast(?1 || n.i as blob), 'p', 'read', 0 from n`,
    { scope: "read" },
    { scope: "admin" },
  ],
])("there is an end to %s, which two at once do not pass", async (noun, present, fill, wanted, tooMany) => {
  const t = await createTestTenant();
  const { body: endpoint } = await createEndpoint(t);
  const numbers = "with recursive n(i) as (select 1 union all select i + 1 from n where i < ?2)";
  await dbOf(t)
    .prepare(fill.replace("insert", `${numbers} insert`))
    .bind(t.id, present)
    .run();
  const withEndpoint = (body: object) => (noun === "subscriptions" ? { ...body, endpoint_id: endpoint.id } : body);
  const [one, two] = await Promise.all([
    t.api.post(`/v1/${noun}`, withEndpoint(wanted)),
    t.api.post(`/v1/${noun}`, withEndpoint(tooMany)),
  ]);
  expect([one.status, two.status].toSorted()).toEqual([201, 409]);
  const before = await countRows(t);
  expect(await t.api.post(`/v1/${noun}`, withEndpoint(tooMany))).toMatchObject(full);
  expect(await countRows(t)).toEqual(before);
  const made = one.status === 201 ? one : two;
  await t.api.delete(`/v1/${noun}/${made.body.id}`);
  expect((await t.api.post(`/v1/${noun}`, withEndpoint(wanted))).status).toBe(201);
});
