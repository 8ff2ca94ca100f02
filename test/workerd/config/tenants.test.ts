import { expect, test } from "vitest";
import { createApi, createTestTenant, operatorToken } from "../support/api.ts";

const operator = createApi(operatorToken);

test("a tenant shows what it was made with, then and later", async () => {
  const made = await operator.post("/v1/tenants", {
    name: "Acme",
    plan: "free",
    status: "active",
    endpoint_quota: null,
    header_prefix: "X-Acme-",
  });
  expect(made).toMatchObject({
    status: 201,
    body: {
      id: expect.stringMatching(/^ten_/),
      name: "Acme",
      plan: "free",
      status: "active",
      endpoint_quota: null,
      header_prefix: "X-Acme-",
      suspended_at: null,
    },
  });
  expect((await operator.get(`/v1/tenants/${made.body.id}`)).body).toEqual(made.body);
});

test.each([{}, { name: "" }, { name: "x".repeat(129) }, { name: "a\u0000b" }, { name: "x", id: "ten_0" }])(
  "%j is refused as invalid",
  async (body) => {
    expect(await operator.post("/v1/tenants", body)).toMatchObject({
      status: 422,
      body: { code: "validation_failed" },
    });
  },
);

test.each([
  { plan: "gold" },
  { plan: null },
  { status: "paused" },
  { suspended_at: null },
  { endpoint_quota: -1 },
  { endpoint_quota: 1.5 },
  { header_prefix: "" },
  { header_prefix: "X-" },
  { header_prefix: "X-Acme" },
  { header_prefix: "X_Acme-" },
  { header_prefix: "X-Acmé-" },
  { header_prefix: "X-Acme-\r\nA: " },
  { header_prefix: `X-${"a".repeat(30)}-` },
  { header_prefix: "Webhook-" },
  { header_prefix: "x-webhook-acme-" },
  { header_prefix: "X-Forwarded-" },
  { header_prefix: "ce-" },
  { header_prefix: 1 },
])("%j is refused as invalid, at creation and in a change, and changes nothing", async (part) => {
  const expected = { status: 422, body: { code: "validation_failed", errors: [{ path: Object.keys(part)[0] }] } };
  expect(await operator.post("/v1/tenants", { name: "x", ...part })).toMatchObject(expected);
  const { body: tenant } = await operator.post("/v1/tenants", { name: "x" });
  expect(await operator.patch(`/v1/tenants/${tenant.id}`, { name: "y", ...part })).toMatchObject(expected);
  expect((await operator.get(`/v1/tenants/${tenant.id}`)).body).toEqual(tenant);
});

test("a tenant may be made suspended; plan and status change, and a change touches only what it names", async () => {
  const made = await operator.post("/v1/tenants", { name: "x", plan: "pro", status: "suspended" });
  expect(made.body).toMatchObject({ plan: "pro", status: "suspended", suspended_at: made.body.created_at });
  const path = `/v1/tenants/${made.body.id}`;
  expect((await operator.patch(path, { plan: "enterprise" })).body).toEqual({ ...made.body, plan: "enterprise" });
  // Suspending it again does not move the moment.
  expect((await operator.patch(path, { status: "suspended" })).body).toEqual({ ...made.body, plan: "enterprise" });
  const active = { ...made.body, plan: "enterprise", status: "active", suspended_at: null };
  expect((await operator.patch(path, { status: "active" })).body).toEqual(active);
  expect((await operator.patch(path, { status: "active" })).body).toEqual(active);
});

test("the list has every living tenant, newest first, and passes over deleted ones", async () => {
  const made: string[] = [];
  for (let n = 0; n < 4; n++) made.push((await operator.post("/v1/tenants", { name: `t${n}` })).body.id);
  await operator.delete(`/v1/tenants/${made[1]}`);
  const seen: string[] = [];
  let cursor: string | null = "";
  do {
    const query: string = cursor === "" ? "?limit=2" : `?limit=2&cursor=${cursor}`;
    const { body } = await operator.get(`/v1/tenants${query}`);
    seen.push(...body.data.map(({ id }: { id: string }) => id));
    cursor = body.next_cursor;
  } while (cursor !== null);
  expect(seen.filter((id) => made.includes(id)).toSorted()).toEqual([made[0], made[2], made[3]].toSorted());
});

test("a rename is seen; a tenant of nothing is 404", async () => {
  const { body: tenant } = await operator.post("/v1/tenants", { name: "before" });
  expect((await operator.patch(`/v1/tenants/${tenant.id}`, { name: "after" })).body).toEqual({
    ...tenant,
    name: "after",
  });
  expect((await operator.patch(`/v1/tenants/${tenant.id}`, {})).body.name).toBe("after");
  expect((await operator.patch("/v1/tenants/ten_0000000000000000", { name: "x" })).status).toBe(404);
  expect((await operator.get("/v1/tenants/ten_0000000000000000")).status).toBe(404);
  expect((await operator.delete("/v1/tenants/ten_0000000000000000")).status).toBe(404);
});

test("a deleted tenant's keys are refused at once", async () => {
  const t = await createTestTenant();
  expect((await t.api.get("/v1/sources")).status).toBe(200);
  expect((await operator.delete(`/v1/tenants/${t.id}`)).status).toBe(204);
  expect((await t.api.get("/v1/sources")).status).toBe(401);
  expect((await operator.get(`/v1/tenants/${t.id}`)).status).toBe(404);
});

test("a header prefix is refused where an endpoint has a header under it, in any spelling, and so is such a header after it", async () => {
  const t = await createTestTenant();
  const other = await createTestTenant();
  const url = "https://hooks.example.com/in";
  const { body: endpoint } = await t.api.post("/v1/endpoints", { url, headers: { x_aCme_Team: "a", "X-Acmes": "b" } });
  const set = (header_prefix: string | null) => operator.patch(`/v1/tenants/${t.id}`, { header_prefix });

  const refused = await set("X-Acme-");
  expect(refused).toMatchObject({ status: 422, body: { code: "validation_failed" } });
  expect(refused.body.errors).toEqual([{ path: "header_prefix", message: expect.stringContaining("x_aCme_Team") }]);
  expect((await operator.get(`/v1/tenants/${t.id}`)).body.header_prefix).toBeNull();
  // What another tenant, or a deleted endpoint, has is nobody's business.
  expect((await operator.patch(`/v1/tenants/${other.id}`, { header_prefix: "X-Acme-" })).status).toBe(200);
  await t.api.patch(`/v1/endpoints/${endpoint.id}`, { headers: { x_acme_team: null } });
  expect(await set("X-Acme-")).toMatchObject({ status: 200, body: { header_prefix: "X-Acme-" } });

  for (const name of ["X-Acme-Team", "x-acme-id", "X_ACME_TEAM"]) {
    const expected = { status: 422, body: { code: "validation_failed", errors: [{ path: `headers.${name}` }] } };
    const headers = { "X-Other": "fine", [name]: "a" };
    expect(await t.api.post("/v1/endpoints", { url, headers })).toMatchObject(expected);
    expect(await t.api.patch(`/v1/endpoints/${endpoint.id}`, { headers })).toMatchObject(expected);
  }
  const { body: after } = await t.api.get(`/v1/endpoints/${endpoint.id}`);
  expect(after.headers).toEqual({ "X-Acmes": "b" });
  // Clearing what is not there is no harm, and without a prefix the name is free again.
  expect((await t.api.patch(`/v1/endpoints/${endpoint.id}`, { headers: { "X-Acme-Team": null } })).status).toBe(200);
  expect((await set(null)).body.header_prefix).toBeNull();
  expect((await t.api.patch(`/v1/endpoints/${endpoint.id}`, { headers: { "X-Acme-Team": "a" } })).status).toBe(200);
});
