import { expect, test } from "vitest";
import { createApi, createTestTenant } from "../support/api.ts";

test("a key's text is shown once and opens the door", async () => {
  const t = await createTestTenant();
  const { status, body } = await t.api.post("/v1/api-keys", { scope: "read", name: "dashboard" });
  expect(status).toBe(201);
  const { key, ...rest } = body;
  expect(key).toMatch(/^hlk_[0-9a-z]+_[A-Za-z0-9_-]{43}$/);
  expect(key.startsWith(rest.prefix)).toBe(true);
  expect(rest).toMatchObject({
    id: expect.stringMatching(/^key_/),
    scope: "read",
    source_id: null,
    name: "dashboard",
  });
  expect((await createApi(key).get(`/v1/api-keys/${rest.id}`)).body).toEqual(rest);
  expect(JSON.stringify((await t.api.get("/v1/api-keys")).body)).not.toContain(key);
});

test("a publish key belongs to a source of its tenant; a foreign one is as one of nothing", async () => {
  const [t, other] = await Promise.all([createTestTenant(), createTestTenant()]);
  const { body: source } = await t.api.post("/v1/sources", { name: "a" });
  const { body: foreign } = await other.api.post("/v1/sources", { name: "a" });
  expect(await t.api.post("/v1/api-keys", { scope: "publish", source_id: source.id })).toMatchObject({
    status: 201,
    body: { scope: "publish", source_id: source.id },
  });
  const refusals = await Promise.all(
    [foreign.id, "src_0000000000000000", "x"].map((id) =>
      t.api.post("/v1/api-keys", { scope: "publish", source_id: id }),
    ),
  );
  for (const { status, body } of refusals) {
    expect(status).toBe(422);
    expect(body.errors).toEqual(refusals[0]?.body.errors);
    expect(body.errors[0].path).toBe("source_id");
  }
  await t.api.delete(`/v1/sources/${source.id}`);
  expect((await t.api.post("/v1/api-keys", { scope: "publish", source_id: source.id })).status).toBe(422);
});

test.each([
  [{ scope: "publish" }, "source_id"],
  [{ scope: "read", source_id: "src_0000000000000000" }, "source_id"],
  [{ scope: "root" }, "scope"],
  [{ scope: "read", tenant_id: "ten_0000000000000000" }, "tenant_id"],
  [{ scope: "read", expires_at: 1 }, "expires_at"],
])("%j is refused and the field named", async (body, path) => {
  const t = await createTestTenant();
  const refused = await t.api.post("/v1/api-keys", body);
  expect(refused).toMatchObject({ status: 422, body: { code: "validation_failed", errors: [{ path }] } });
});

test("a key's name can be changed and cleared, what it may do cannot", async () => {
  const t = await createTestTenant();
  const { body } = await t.api.post("/v1/api-keys", { scope: "read", name: "a" });
  expect((await t.api.patch(`/v1/api-keys/${body.id}`, { name: "b" })).body.name).toBe("b");
  expect((await t.api.patch(`/v1/api-keys/${body.id}`, {})).body.name).toBe("b");
  expect((await t.api.patch(`/v1/api-keys/${body.id}`, { name: null })).body.name).toBeNull();
  expect((await t.api.patch(`/v1/api-keys/${body.id}`, { scope: "admin" })).status).toBe(422);
});

test("a revoked key is refused at once and no longer listed", async () => {
  const t = await createTestTenant();
  const { body } = await t.api.post("/v1/api-keys", { scope: "admin" });
  expect((await createApi(body.key).get("/v1/sources")).status).toBe(200);
  expect((await t.api.delete(`/v1/api-keys/${body.id}`)).status).toBe(204);
  expect((await createApi(body.key).get("/v1/sources")).status).toBe(401);
  expect((await t.api.delete(`/v1/api-keys/${body.id}`)).status).toBe(404);
  expect((await t.api.get("/v1/api-keys")).body.data.map(({ id }: { id: string }) => id)).not.toContain(body.id);
});
