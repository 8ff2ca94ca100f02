import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { readWebhookKeys } from "../../../src/app/source/read-webhook-keys.ts";
import { encodeBase64 } from "../../../src/core/base64.ts";
import { toHex } from "../../../src/core/hex.ts";
import { composeCentral, shardsOf } from "../../../src/compose.ts";
import { createApi, createTestTenant, operatorToken, type TestTenant } from "../support/api.ts";
import { createTestContext } from "../support/worker.ts";

const HOUR_MS = 3_600_000;
const PUBLIC_KEY = /^whpk_[A-Za-z0-9+/]{43}=$/;
const nobody = createApi(null);
const operator = createApi(operatorToken);

async function createSource() {
  const t = await createTestTenant();
  const { body } = await t.api.post("/v1/sources", { name: "orders" });
  const { signing_key: _, ...source } = body;
  const path = `/v1/sources/${source.id}`;
  const rotate = (body: Record<string, unknown> = {}) =>
    t.api.post(`${path}/rotate-key`, { kind: "delivery_key", ...body });
  return { t, source, path, rotate, keys: () => nobody.get(`/.well-known/webhook-keys/${source.id}`) };
}

const ledgerOf = (t: TestTenant) => shardsOf(env as Env).get(t.shard)!;
const rowOf = (t: TestTenant, id: string) =>
  ledgerOf(t)
    .prepare("select * from source where tenant_id = ? and id = ?")
    .bind(t.id, id)
    .first<Record<string, unknown>>();
const withoutKey = (t: TestTenant, id: string) =>
  ledgerOf(t)
    .prepare(
      `update source set delivery_key = null, delivery_public_key = null, delivery_key_version = 0
       where tenant_id = ? and id = ?`,
    )
    .bind(t.id, id)
    .run();

test("a source has its key from the first, and anybody may read its public half, for five minutes", async () => {
  const { source, keys } = await createSource();
  expect(source).toMatchObject({ delivery_key_version: 1, delivery_key_previous_valid_until: null });
  const { status, body, headers } = await keys();
  expect(status).toBe(200);
  expect(body).toEqual({
    source_id: source.id,
    keys: [{ public_key: expect.stringMatching(PUBLIC_KEY), version: 1, signs_until: null }],
  });
  expect(headers.get("Cache-Control")).toBe("public, max-age=300");
  const other = await createSource();
  expect((await other.keys()).body.keys[0].public_key).not.toBe(body.keys[0].public_key);
});

test("the private half is in no answer, and wrapped in the ledger with its public half beside it", async () => {
  const { t, source, path, rotate, keys } = await createSource();
  const answers = [await rotate(), await t.api.get(path), await t.api.get("/v1/sources"), await keys()];
  const row = (await rowOf(t, source.id))!;
  const hex = (blob: unknown) => toHex(new Uint8Array(blob as number[]));
  // The id of the key that wrapped it, an initial value and a tag come to more than the 32 bytes of a seed.
  expect(hex(row["delivery_key"]).length).toBeGreaterThan(2 * (32 + 28));
  expect(hex(row["delivery_key"])).not.toContain(hex(row["delivery_public_key"]));
  for (const { body } of answers) {
    expect(JSON.stringify(body)).not.toMatch(/whsk_|private/);
    expect(JSON.stringify(body)).not.toContain(encodeBase64(new Uint8Array(row["delivery_key"] as number[])));
  }
});

test("a rotation answers the source, publishes both keys, and leaves the signing key alone", async () => {
  const { t, source, path, rotate, keys } = await createSource();
  const [first] = (await keys()).body.keys;
  const before = Date.now();
  const { status, body } = await rotate({ overlap_hours: 36 });
  expect(status).toBe(200);
  const { delivery_key_previous_valid_until: until } = body;
  expect(body).toEqual({ ...source, delivery_key_version: 2, delivery_key_previous_valid_until: until });
  expect(Date.parse(until) - 36 * HOUR_MS).toBeGreaterThanOrEqual(before);
  expect(Date.parse(until) - 36 * HOUR_MS).toBeLessThanOrEqual(Date.now());
  expect((await t.api.get(path)).body).toEqual(body);
  const [second, ...others] = (await keys()).body.keys;
  expect(second).toEqual({ public_key: expect.stringMatching(PUBLIC_KEY), version: 2, signs_until: null });
  expect(second.public_key).not.toBe(first.public_key);
  expect(others).toEqual([{ ...first, signs_until: until }]);
});

test("a rotation of one kind does not stand in the way of the other", async () => {
  const { t, path, rotate } = await createSource();
  expect((await rotate()).status).toBe(200);
  expect((await t.api.post(`${path}/rotate-key`)).status).toBe(201);
  expect((await t.api.get(path)).body).toMatchObject({ signing_key_version: 2, delivery_key_version: 2 });
});

test("a rotation while two keys live is refused; force ends the oldest at once, also for those who read", async () => {
  const { rotate, keys } = await createSource();
  const [first] = (await keys()).body.keys;
  await rotate();
  expect(await rotate()).toMatchObject({ status: 409, body: { code: "rotation_in_progress" } });
  expect(await rotate({ force: true })).toMatchObject({ status: 200, body: { delivery_key_version: 3 } });
  const { body } = await keys();
  expect(body.keys.map(({ version }: any) => version)).toEqual([3, 2]);
  expect(JSON.stringify(body)).not.toContain(first.public_key);
});

test("of many rotations at once one happens, and of forced ones each, one after the other", async () => {
  const { rotate } = await createSource();
  const answers = await Promise.all(Array.from({ length: 5 }, () => rotate()));
  expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409, 409, 409, 409]);
  const forced = await Promise.all(Array.from({ length: 4 }, () => rotate({ force: true })));
  expect(forced.map(({ body }) => body.delivery_key_version).toSorted()).toEqual([3, 4, 5, 6]);
});

test("a key is read for ten minutes longer than it signs, and then no more", async () => {
  const { source, rotate } = await createSource();
  const { body } = await rotate();
  const until = Date.parse(body.delivery_key_previous_valid_until);
  const central = composeCentral(env as Env, createTestContext().context);
  const versionsAt = async (now: number) =>
    (await readWebhookKeys({ ...central, now: () => now }, source.id)).map(({ version }) => version);
  expect(await versionsAt(until - 1)).toEqual([2, 1]);
  expect(await versionsAt(until)).toEqual([2, 1]);
  expect(await versionsAt(until + 599_999)).toEqual([2, 1]);
  expect(await versionsAt(until + 600_000)).toEqual([2]);
});

test("a source from before there were keys has none to read, and gets its first by a rotation", async () => {
  const { t, source, rotate, keys } = await createSource();
  await withoutKey(t, source.id);
  expect(await keys()).toMatchObject({ status: 404, body: { code: "not_found" } });
  const expected = { delivery_key_version: 1, delivery_key_previous_valid_until: null };
  expect(await rotate()).toMatchObject({ status: 200, body: expected });
  expect((await keys()).body.keys).toEqual([
    { public_key: expect.stringMatching(PUBLIC_KEY), version: 1, signs_until: null },
  ]);
});

test("whatever there is to refuse is one refusal: no id, no source, no key, a tenant that is gone", async () => {
  const { t, source, keys } = await createSource();
  const gone = await createSource();
  expect((await gone.keys()).status).toBe(200);
  await operator.delete(`/v1/tenants/${gone.t.id}`);
  await withoutKey(t, source.id);
  const texts = new Set<string>();
  for (const id of [
    source.id,
    gone.source.id,
    "src_0000000000000000",
    "src_",
    "orders",
    t.id,
    "..%2fsrc",
    "é".repeat(200),
  ]) {
    const { status, body, headers } = await nobody.get(`/.well-known/webhook-keys/${id}`);
    expect(status).toBe(404);
    expect(headers.get("Cache-Control")).toBe("no-store");
    texts.add(JSON.stringify({ ...body, request_id: "" }));
  }
  expect([...texts]).toHaveLength(1);
  expect((await keys()).body).toMatchObject({ code: "not_found" });
});

test("a deleted source is answered on, and its key rotated, since its deliveries go on; its signing key is not", async () => {
  const { t, path, rotate, keys } = await createSource();
  const before = (await keys()).body;
  await t.api.delete(path);
  expect((await keys()).body).toEqual(before);
  expect(await rotate()).toMatchObject({ status: 200, body: { delivery_key_version: 2 } });
  expect((await keys()).body.keys).toHaveLength(2);
  expect((await t.api.post(`${path}/rotate-key`)).status).toBe(404);
  expect((await t.api.get(path)).status).toBe(404);
});

test("another tenant's source has no key to rotate, living or deleted", async () => {
  const { t, path, keys } = await createSource();
  const before = (await keys()).body;
  const other = await createTestTenant();
  const rotate = () => other.api.post(`${path}/rotate-key`, { kind: "delivery_key", force: true });
  expect(await rotate()).toMatchObject({ status: 404, body: { code: "not_found" } });
  await t.api.delete(path);
  expect((await rotate()).status).toBe(404);
  expect((await keys()).body).toEqual(before);
});

test("the route takes no query and no other method, and no token makes a difference", async () => {
  const { t, source, keys } = await createSource();
  const path = `/.well-known/webhook-keys/${source.id}`;
  expect(await nobody.get(`${path}?v=1`)).toMatchObject({ status: 422, body: { errors: [{ path: "v" }] } });
  expect(await nobody.post(path)).toMatchObject({ status: 405, headers: expect.anything() });
  expect((await t.api.get(path)).body).toEqual((await keys()).body);
});

test.each([
  [{ overlap_hours: 23 }, "overlap_hours"],
  [{ overlap_hours: 73 }, "overlap_hours"],
  [{ force: "yes" }, "force"],
  [{ key: "whsk_" }, "key"],
])("rotation %j is refused, the field named, and the key stays", async (body, path) => {
  const { t, source, rotate } = await createSource();
  const before = await rowOf(t, source.id);
  expect(await rotate(body)).toMatchObject({ status: 422, body: { code: "validation_failed", errors: [{ path }] } });
  expect(await rowOf(t, source.id)).toEqual(before);
});
