import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { shardsOf } from "../../../src/compose.ts";
import { createApi, createTestTenant, type TestTenant } from "../support/api.ts";

const URL = "https://hooks.example.com/in";
const SECRET = "Bearer swordfish-4711";

async function createWith(headers: unknown): Promise<{ t: TestTenant; path: string; body: any }> {
  const t = await createTestTenant();
  const { status, body } = await t.api.post("/v1/endpoints", { url: URL, headers });
  expect(status).toBe(201);
  return { t, path: `/v1/endpoints/${body.id}`, body };
}

async function storedHeaders(t: TestTenant, id: string): Promise<string> {
  const db = shardsOf(env as Env).get(t.shard)!;
  return (await db.prepare("select headers from endpoint where id = ?").bind(id).first<string>("headers"))!;
}

test("headers are shown as they were given, write-only ones by name only", async () => {
  const given = { "X-Team": "orders", authorization: SECRET, "X-Api-Key": "k" };
  const { t, path, body } = await createWith(given);
  const shown = { "X-Team": "orders", authorization: "[redacted]", "X-Api-Key": "[redacted]" };
  expect(body.headers).toEqual(shown);
  expect((await t.api.get(path)).body.headers).toEqual(shown);
  expect((await t.api.get("/v1/endpoints")).body.data[0].headers).toEqual(shown);
  expect((await createApi(await t.readKey()).get(path)).body.headers).toEqual(shown);
  expect((await t.api.patch(path, { name: "n" })).body.headers).toEqual(shown);
  expect((await t.api.post(`${path}/pause`)).body.headers).toEqual(shown);
});

test("a write-only value is nowhere in the ledger", async () => {
  const { t, body } = await createWith({ Authorization: SECRET });
  const stored = await storedHeaders(t, body.id);
  expect(JSON.parse(stored)).toEqual({ Authorization: { wrapped: expect.stringMatching(/^[A-Za-z0-9+/=]{40,}$/) } });
  expect(stored).not.toContain("swordfish");
});

test("a change is merged by name in any case, null clears one, and what is not named stays", async () => {
  const { t, path } = await createWith({ "X-Team": "orders", "X-Env": "live", Authorization: SECRET });
  const changed = await t.api.patch(path, { headers: { "x-team": "carts", "X-ENV": null, "X-New": "n" } });
  expect(changed).toMatchObject({ status: 200, body: { revision: 2 } });
  expect(changed.body.headers).toEqual({ "x-team": "carts", Authorization: "[redacted]", "X-New": "n" });
  expect((await t.api.patch(path, { headers: {} })).body.headers).toEqual(changed.body.headers);
  expect((await t.api.patch(path, { headers: { authorization: null } })).body.headers).toEqual({
    "x-team": "carts",
    "X-New": "n",
  });
  expect((await t.api.patch(path, { headers: null })).body.headers).toEqual({});
});

test("an answer that is sent back keeps its hidden values; the mark is never taken for a value", async () => {
  const { t, path, body } = await createWith({ "X-Team": "orders", Authorization: SECRET });
  const before = await storedHeaders(t, body.id);
  expect((await t.api.patch(path, { headers: body.headers })).status).toBe(200);
  expect(await storedHeaders(t, body.id)).toBe(before);
  for (const headers of [{ "X-Api-Key": "[redacted]" }, { "X-Team": "[redacted]" }]) {
    const refused = await t.api.patch(path, { headers });
    expect(refused.body.errors).toEqual([{ path: `headers.${Object.keys(headers)[0]}`, message: expect.any(String) }]);
    expect((await t.api.post("/v1/endpoints", { url: URL, headers })).status).toBe(422);
  }
  expect(await storedHeaders(t, body.id)).toBe(before);
});

const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`X-${i}`, "v"]));

test.each<[headers: unknown, path: string]>([
  [{ Host: "a" }, "headers.Host"],
  [{ "content-type": "text/plain" }, "headers.content-type"],
  [{ "X-Webhook-Hop": "0" }, "headers.X-Webhook-Hop"],
  [{ "webhook-signature": "v1,x" }, "headers.webhook-signature"],
  [{ "X-Ok": "a", "Transfer-Encoding": "chunked" }, "headers.Transfer-Encoding"],
  [{ "X Y": "a" }, "headers.X Y"],
  [{ "": "a" }, "headers."],
  [{ "X-A": "a\r\nX-B: b" }, "headers.X-A"],
  [{ "X-A": "" }, "headers.X-A"],
  [{ "X-A": "ü" }, "headers.X-A"],
  [{ "X-A": "v".repeat(1025) }, "headers.X-A"],
  [{ "X-A": 1 }, "headers.X-A"],
  [{ "X-A": ["a", "b"] }, "headers.X-A"],
  [{ "X-A": "a", "x-a": "b" }, "headers.x-a"],
  [{ "X-A": "a", "x-a": null }, "headers.x-a"],
  [JSON.parse('{"__proto__":"a"}'), "headers.__proto__"],
  [many(21), "headers"],
  [[["X-A", "a"]], "headers"],
  ["X-A: a", "headers"],
])("%j is refused and the field named, at creation and in a change", async (headers, path) => {
  const { t, path: endpoint, body } = await createWith({ "X-Team": "orders" });
  const expected = { status: 422, body: { code: "validation_failed", errors: [{ path }] } };
  expect(await t.api.post("/v1/endpoints", { url: URL, headers })).toMatchObject(expected);
  expect(await t.api.patch(endpoint, { headers, name: "changed" })).toMatchObject(expected);
  expect((await t.api.get(endpoint)).body).toMatchObject({ headers: { "X-Team": "orders" }, name: null, revision: 1 });
  expect((await t.api.get("/v1/endpoints")).body.data).toHaveLength(1);
  expect(await storedHeaders(t, body.id)).toBe('{"X-Team":"orders"}');
});

test("no refusal repeats a value", async () => {
  const t = await createTestTenant();
  const headers = { Authorization: `${SECRET}\n`, "X-Api-Key": `${SECRET}ü`, Host: SECRET };
  const { body } = await t.api.post("/v1/endpoints", { url: URL, headers });
  expect(body.errors).toHaveLength(3);
  expect(JSON.stringify(body)).not.toContain("swordfish");
});

test("twenty headers are the limit, counted as a change leaves them", async () => {
  const { t, path } = await createWith(many(20));
  const added = await t.api.patch(path, { headers: { "X-More": "v" } });
  expect(added.body.errors).toEqual([{ path: "headers", message: "an endpoint has at most 20 headers" }]);
  expect((await t.api.patch(path, { headers: { "X-More": "v", "X-0": null } })).status).toBe(200);
});

test("changes of headers at once are all kept", async () => {
  const { t, path } = await createWith({ "X-Team": "orders" });
  const parts = [{ "X-A": "a" }, { "X-B": "b" }, { Authorization: SECRET }, { "X-Team": null }];
  const answers = await Promise.all(parts.map((headers) => t.api.patch(path, { headers })));
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  expect((await t.api.get(path)).body.headers).toEqual({ "X-A": "a", "X-B": "b", Authorization: "[redacted]" });
});

test("headers change with URL, policy and order in one request, or not at all", async () => {
  const { t, path, body } = await createWith({ "X-Team": "orders", Authorization: SECRET });
  const all = {
    url: "https://other.example.com/",
    headers: { Authorization: "Bearer new", "X-Team": null },
    retry_policy: { max_attempts: 3 },
    ordering_mode: "strict",
  };
  expect((await t.api.patch(path, all)).body).toMatchObject({ url: all.url, ordering_mode: "strict" });
  const { body: changed } = await t.api.get(path);
  expect(changed).toMatchObject({ url: all.url, ordering_mode: "strict", retry_policy: { max_attempts: 3 } });
  expect(changed.headers).toEqual({ Authorization: "[redacted]" });
  const before = await storedHeaders(t, body.id);
  for (const part of [{ retry_policy: { jitter: 0 } }, { concurrency_cap: 3 }, {}]) {
    const refused = await t.api.patch(path, { ...part, url: "https://third.example.com/", headers: many(20) });
    expect(refused.status).toBe(422);
  }
  expect(await storedHeaders(t, body.id)).toBe(before);
  expect((await t.api.get(path)).body).toEqual(changed);
});

test("another tenant's headers are as far away as its endpoint", async () => {
  const { path } = await createWith({ "X-Team": "orders" });
  const other = await createTestTenant();
  expect((await other.api.patch(path, { headers: { "X-Team": null } })).status).toBe(404);
});
