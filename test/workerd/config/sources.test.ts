import { expect, test } from "vitest";
import { createTestTenant } from "../support/api.ts";

test("a source shows what it was made with, then and later", async () => {
  const t = await createTestTenant();
  const made = await t.api.post("/v1/sources", {
    name: "billing",
    allowed_event_types: ["invoice.*", "customer.created"],
  });
  expect(made).toMatchObject({
    status: 201,
    body: {
      id: expect.stringMatching(/^src_[0-9a-z]{16}$/),
      name: "billing",
      allowed_event_types: ["invoice.*", "customer.created"],
      signing_key_version: 1,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    },
  });
  const { signing_key, ...shown } = made.body;
  expect(signing_key).toEqual(expect.any(String));
  expect((await t.api.get(`/v1/sources/${made.body.id}`)).body).toEqual(shown);
});

test("a source that names no types may publish all", async () => {
  const t = await createTestTenant();
  const made = await t.api.post("/v1/sources", { name: "all" });
  expect(made.body.allowed_event_types).toEqual(["*"]);
});

test.each([
  [{}, "name"],
  [{ name: "Billing" }, "name"],
  [{ name: "-x" }, "name"],
  [{ name: "x".repeat(64) }, "name"],
  [{ name: "x", allowed_event_types: [] }, "allowed_event_types"],
  [{ name: "x", allowed_event_types: Array.from({ length: 101 }, () => "a") }, "allowed_event_types"],
  [{ name: "x", allowed_event_types: ["a", "b..c"] }, "allowed_event_types.1"],
  [{ name: "x", signing_key: "whsec_AAAA" }, "signing_key"],
])("%j is refused and the field named", async (body, path) => {
  const t = await createTestTenant();
  const refused = await t.api.post("/v1/sources", body);
  expect(refused).toMatchObject({ status: 422, body: { code: "validation_failed" } });
  expect(refused.body.errors.map((error: { path: string }) => error.path)).toContain(path);
  expect((await t.api.get("/v1/sources")).body.data).toEqual([]);
});

test.each(["hooklane.*", "hooklane.endpoint.disabled", "hooklane.none"])(
  "no source may publish %s, which is the relay's own",
  async (pattern) => {
    const t = await createTestTenant();
    const refused = await t.api.post("/v1/sources", { name: "x", allowed_event_types: [pattern] });
    expect(refused).toMatchObject({ status: 422, body: { code: "validation_failed" } });
    expect(refused.body.errors).toMatchObject([{ path: "allowed_event_types.0" }]);
  },
);

test("no source takes the name under which the relay itself speaks", async () => {
  const t = await createTestTenant();
  const refused = { status: 422, body: { code: "validation_failed", errors: [{ path: "name" }] } };
  expect(await t.api.post("/v1/sources", { name: "hooklane" })).toMatchObject(refused);
  const source = await t.api.post("/v1/sources", { name: "orders" });
  expect(
    await t.api.patch(`/v1/sources/${source.body.source?.id ?? source.body.id}`, { name: "hooklane" }),
  ).toMatchObject(refused);
});

test("of many that take one name at once, one gets it", async () => {
  const t = await createTestTenant();
  const answers = await Promise.all(Array.from({ length: 5 }, () => t.api.post("/v1/sources", { name: "wanted" })));
  expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 409, 409, 409, 409]);
  expect(answers.find(({ status }) => status === 409)?.body.code).toBe("name_taken");
});

test("a rename to a taken name is refused, and a deleted source's name is free", async () => {
  const t = await createTestTenant();
  const first = await t.api.post("/v1/sources", { name: "first" });
  const second = await t.api.post("/v1/sources", { name: "second" });
  expect(await t.api.patch(`/v1/sources/${second.body.id}`, { name: "first" })).toMatchObject({
    status: 409,
    body: { code: "name_taken" },
  });
  expect((await t.api.delete(`/v1/sources/${first.body.id}`)).status).toBe(204);
  expect((await t.api.patch(`/v1/sources/${second.body.id}`, { name: "first" })).body.name).toBe("first");
});

test("a change touches only what it names", async () => {
  const t = await createTestTenant();
  const { body } = await t.api.post("/v1/sources", { name: "a", allowed_event_types: ["x"] });
  const { signing_key: _, ...source } = body;
  expect((await t.api.patch(`/v1/sources/${source.id}`, {})).body).toEqual(source);
  expect((await t.api.patch(`/v1/sources/${source.id}`, { allowed_event_types: ["y"] })).body).toEqual({
    ...source,
    allowed_event_types: ["y"],
  });
  expect((await t.api.patch(`/v1/sources/${source.id}`, { name: null })).status).toBe(422);
});

test("a deleted source is gone, and its publish keys with it", async () => {
  const t = await createTestTenant();
  const { body: source } = await t.api.post("/v1/sources", { name: "a" });
  const { body: key } = await t.api.post("/v1/api-keys", { scope: "publish", source_id: source.id });
  expect((await t.api.delete(`/v1/sources/${source.id}`)).status).toBe(204);
  expect((await t.api.get(`/v1/sources/${source.id}`)).status).toBe(404);
  expect((await t.api.patch(`/v1/sources/${source.id}`, { name: "b" })).status).toBe(404);
  expect((await t.api.delete(`/v1/sources/${source.id}`)).status).toBe(404);
  expect((await t.api.get("/v1/sources")).body.data).toEqual([]);
  expect((await t.api.get(`/v1/api-keys/${key.id}`)).status).toBe(404);
});

test("a list goes newest first, page by page, each row once", async () => {
  const t = await createTestTenant();
  const ids: string[] = [];
  for (let n = 0; n < 5; n++) ids.push((await t.api.post("/v1/sources", { name: `s${n}` })).body.id);
  const seen: string[] = [];
  let query = "?limit=2";
  for (let pages = 0; pages < 3; pages++) {
    const { body } = await t.api.get(`/v1/sources${query}`);
    seen.push(...body.data.map(({ id }: { id: string }) => id));
    query = `?limit=2&cursor=${body.next_cursor}`;
    expect(body.next_cursor === null).toBe(pages === 2);
  }
  expect(seen.toSorted()).toEqual(ids.toSorted());
  const times = (await t.api.get("/v1/sources")).body.data.map((row: { created_at: string }) => row.created_at);
  expect(times).toEqual(times.toSorted().toReversed());
});

test.each(["limit=0", "limit=251", "cursor=nonsense", "page=2", "limit=1&limit=2"])("?%s is refused", async (query) => {
  const t = await createTestTenant();
  expect((await t.api.get(`/v1/sources?${query}`)).status).toBe(422);
});
