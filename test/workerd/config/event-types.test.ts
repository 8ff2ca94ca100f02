import { expect, test } from "vitest";
import { createTestTenant } from "../support/api.ts";

const SCHEMA = { type: "object", required: ["id"], properties: { id: { type: "integer" } } };

async function withType(fields: Record<string, unknown> = {}) {
  const tenant = await createTestTenant();
  const { api } = tenant;
  await api.post("/v1/sources", { name: "orders" });
  const made = await api.post("/v1/event-types", { name: "order.created", ...fields });
  return { tenant, api, made };
}

test("a type shows its versions, lowest first, then and later", async () => {
  const { api, made } = await withType({ schema_version: 3, json_schema: SCHEMA });
  const created_at = expect.any(String);
  const three = { schema_version: 3, json_schema: SCHEMA, retired_at: null, created_at };
  expect(made).toMatchObject({ status: 201 });
  expect(made.body).toEqual({ name: "order.created", required_scope: null, versions: [three], created_at });
  const more = await api.post("/v1/event-types", { name: "order.created" });
  const one = { schema_version: 1, json_schema: null, retired_at: null, created_at };
  expect(more.body.versions).toEqual([one, three]);
  expect(more.body.created_at).toBe(made.body.created_at);
  expect((await api.get("/v1/event-types/order.created")).body).toEqual(more.body);
  expect((await api.get("/v1/event-types")).body.data).toEqual([more.body]);
});

test("a version that the type has is 409, and changes nothing, not the scope either", async () => {
  const { api, made } = await withType();
  const again = { name: "order.created", json_schema: SCHEMA, required_scope: "orders" };
  expect(await api.post("/v1/event-types", again)).toMatchObject({ status: 409, body: { code: "version_taken" } });
  expect((await api.get("/v1/event-types/order.created")).body).toEqual(made.body);
});

test("of many who register the same version at once one does", async () => {
  const { api } = await withType();
  const version = { name: "order.created", schema_version: 2 };
  const answers = await Promise.all([1, 2, 3, 4].map(() => api.post("/v1/event-types", version)));
  expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 409, 409, 409]);
});

test("a scope is the type's, whichever version it was given with, and stays when another gives none", async () => {
  const { api } = await withType({ required_scope: "a" });
  const scopeAfter = async (fields: object) =>
    (await api.post("/v1/event-types", { name: "order.created", ...fields })).body.required_scope;
  expect(await scopeAfter({ schema_version: 2 })).toBe("a");
  expect(await scopeAfter({ schema_version: 3, required_scope: "b" })).toBe("b");
  expect((await api.get("/v1/event-types/order.created")).body.required_scope).toBe("b");
  const cleared = await api.patch("/v1/event-types/order.created", { required_scope: null });
  expect(cleared.body.required_scope).toBeNull();
});

test.each([
  [{ name: "order.*" }, "name"],
  [{ name: "hooklane.test" }, "name"],
  [{ name: "a", schema_version: 0 }, "schema_version"],
  [{ name: "a", schema_version: 1.5 }, "schema_version"],
  [{ name: "a", required_scope: "two words" }, "required_scope"],
  [{ name: "a", required_scope: "" }, "required_scope"],
  [{ name: "a", json_schema: "object" }, "json_schema"],
  [{ name: "a", json_schema: { properties: { id: { typ: "string" } } } }, "json_schema.properties.id.typ"],
  [{ name: "a", json_schema: { pattern: "(?=a)" } }, "json_schema.pattern"],
  [{ name: "a", retired: true }, "retired"],
])("%j is refused by name", async (body, path) => {
  const { api } = await createTestTenant();
  const { status, body: problem } = await api.post("/v1/event-types", body);
  expect({ status, paths: problem.errors.map((error: any) => error.path) }).toEqual({ status: 422, paths: [path] });
  expect((await api.get("/v1/event-types")).body.data).toEqual([]);
});

test.each([
  [{ retired: true }, "schema_version"],
  [{ json_schema: null }, "schema_version"],
  [{ schema_version: 1 }, "schema_version"],
  [{ schema_version: 2, retired: true }, "schema_version"],
  [{ required_scope: "a", force: true }, "force"],
  [{ schema_version: 1, json_schema: { minimum: "1" } }, "json_schema.minimum"],
])("a change to %j is refused by name, and changes nothing", async (body, path) => {
  const { api, made } = await withType();
  const answer = await api.patch("/v1/event-types/order.created", body);
  expect(answer).toMatchObject({ status: 422, body: { errors: [{ path }] } });
  expect((await api.get("/v1/event-types/order.created")).body).toEqual(made.body);
});

test("a change without a field changes nothing", async () => {
  const { api, made } = await withType({ json_schema: SCHEMA, required_scope: "a" });
  expect((await api.patch("/v1/event-types/order.created", {})).body).toEqual(made.body);
});

test("a version is retired, keeps the moment, and is taken back", async () => {
  const { api } = await withType();
  const retire = () => api.patch("/v1/event-types/order.created", { schema_version: 1, retired: true });
  const retired = await retire();
  expect(retired.body.versions).toMatchObject([{ retired_at: expect.any(String) }]);
  expect((await retire()).body).toEqual(retired.body);
  const back = await api.patch("/v1/event-types/order.created", { schema_version: 1, retired: false });
  expect(back.body.versions).toMatchObject([{ retired_at: null }]);
});

test("a deleted type is 404, and can be registered anew", async () => {
  const { api } = await withType({ json_schema: SCHEMA, required_scope: "a" });
  await api.post("/v1/event-types", { name: "order.created", schema_version: 2 });
  expect((await api.delete("/v1/event-types/order.created")).status).toBe(204);
  for (const call of [api.get, api.delete]) expect((await call("/v1/event-types/order.created")).status).toBe(404);
  expect((await api.patch("/v1/event-types/order.created", { required_scope: "b" })).status).toBe(404);
  const anew = await api.post("/v1/event-types", { name: "order.created" });
  expect(anew.body).toMatchObject({ required_scope: null, versions: [{ schema_version: 1, json_schema: null }] });
});

test("the list is newest first, a type once whatever its versions, and pages by its cursor", async () => {
  const { api } = await createTestTenant();
  const names = ["a.one", "b.two", "c.three", "d.four", "e.five"];
  for (const name of names) {
    for (const schema_version of [1, 2]) await api.post("/v1/event-types", { name, schema_version });
  }
  const seen: string[] = [];
  for (let cursor = ""; ;) {
    const { body } = await api.get(`/v1/event-types?limit=2${cursor}`);
    for (const { name, versions } of body.data) {
      seen.push(name);
      expect(versions).toHaveLength(2);
    }
    if (body.next_cursor === null) break;
    cursor = `&cursor=${body.next_cursor}`;
  }
  // Two of one millisecond go by their names, backwards too.
  expect(seen.toSorted()).toEqual(names);
  const { body } = await api.get("/v1/event-types");
  expect(body.data.map(({ name }: { name: string }) => name)).toEqual(seen);
  const times = body.data.map(({ created_at }: { created_at: string }) => created_at);
  expect(times).toEqual(times.toSorted().toReversed());
  expect((await api.get("/v1/sources?limit=1")).status).toBe(200);
});

test("schemas of one tenant take no more room than an isolate should keep, and what is no more leaves it", async () => {
  const { api } = await createTestTenant();
  const json_schema = { description: "x".repeat(60_000) };
  const register = (n: number) => api.post("/v1/event-types", { name: `type.n${n}`, json_schema });
  for (let n = 0; n < 17; n++) expect((await register(n)).status).toBe(201);
  expect(await register(17)).toMatchObject({ status: 409, body: { code: "quota_exceeded" } });
  const { body } = await api.post("/v1/event-types", { name: "type.small", json_schema: { type: "object" } });
  expect(body.versions).toHaveLength(1);
  const grown = await api.patch("/v1/event-types/type.small", { schema_version: 1, json_schema });
  expect(grown).toMatchObject({ status: 409, body: { code: "quota_exceeded" } });
  expect((await api.get("/v1/event-types/type.small")).body).toEqual(body);
  // The room of the schema it replaces counts as free.
  expect((await api.patch("/v1/event-types/type.n3", { schema_version: 1, json_schema })).status).toBe(200);
  await api.delete("/v1/event-types/type.n3");
  expect((await register(17)).status).toBe(201);
});
