import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { shardsOf } from "../../../src/compose.ts";
import { createTestTenant, type TestTenant } from "../support/api.ts";

const HOUR_MS = 3_600_000;
const KEY = /^whsec_[A-Za-z0-9+/]{43}=$/;

async function createSource() {
  const t = await createTestTenant();
  const { body } = await t.api.post("/v1/sources", { name: "orders" });
  const { signing_key, ...source } = body;
  const path = `/v1/sources/${source.id}`;
  return { t, source, signing_key, path, rotate: (body?: unknown) => t.api.post(`${path}/rotate-key`, body) };
}

const rowOf = (t: TestTenant, id: string) =>
  shardsOf(env as Env)
    .get(t.shard)!
    .prepare("select * from source where tenant_id = ? and id = ?")
    .bind(t.id, id)
    .first<Record<string, unknown>>();

test("the signing key is shown when the source is made, and in no answer after it", async () => {
  const { t, source, signing_key, path } = await createSource();
  expect(signing_key).toMatch(KEY);
  expect(source).toMatchObject({ signing_key_version: 1, previous_valid_until: null });
  expect((await t.api.get(path)).body).toEqual(source);
  expect((await t.api.get("/v1/sources")).body.data).toEqual([source]);
  expect((await t.api.patch(path, { allowed_event_types: ["*"] })).body).toEqual(source);
});

test("at rest a key is not what was shown, and every source has its own", async () => {
  const { t, source, signing_key } = await createSource();
  const other = await t.api.post("/v1/sources", { name: "other" });
  expect(other.body.signing_key).not.toBe(signing_key);
  const stored = await rowOf(t, source.id);
  const wrapped = new Uint8Array(stored!["signing_key"] as ArrayLike<number>);
  const plain = Uint8Array.from(atob(signing_key.slice("whsec_".length)), (char) => char.charCodeAt(0));
  expect(plain).toHaveLength(32);
  const hex = (bytes: Uint8Array) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  expect(hex(wrapped)).not.toContain(hex(plain));
});

test("a rotation shows the new key once, and says until when the previous one verifies", async () => {
  const { t, source, signing_key, path, rotate } = await createSource();
  const before = Date.now();
  const { status, body } = await rotate({ kind: "signing_key", overlap_hours: 36 });
  expect(status).toBe(201);
  const { signing_key: next, previous_valid_until, ...rest } = body;
  expect(next).toMatch(KEY);
  expect(next).not.toBe(signing_key);
  expect({ ...rest, previous_valid_until: null }).toEqual({ ...source, signing_key_version: 2 });
  const overlapMs = Date.parse(previous_valid_until) - 36 * HOUR_MS;
  expect(overlapMs).toBeGreaterThanOrEqual(before);
  expect(overlapMs).toBeLessThanOrEqual(Date.now());
  expect((await t.api.get(path)).body).toEqual({ ...rest, previous_valid_until });
});

test("a rotation without a body overlaps a day", async () => {
  const { rotate } = await createSource();
  const before = Date.now();
  const { body } = await rotate();
  expect(Math.abs(Date.parse(body.previous_valid_until) - before - 24 * HOUR_MS)).toBeLessThan(60_000);
});

test("a rotation while two keys live is refused; force ends the oldest and keeps the newest beside its successor", async () => {
  const { t, source, path, rotate } = await createSource();
  await rotate();
  const second = await rowOf(t, source.id);
  expect(await rotate()).toMatchObject({ status: 409, body: { code: "rotation_in_progress" } });
  expect(await rowOf(t, source.id)).toEqual(second);
  expect(await rotate({ force: true })).toMatchObject({ status: 201, body: { signing_key_version: 3 } });
  const third = await rowOf(t, source.id);
  expect(third!["signing_key_previous"]).toEqual(second!["signing_key"]);
  expect((await t.api.get(path)).body.signing_key_version).toBe(3);
});

test("when the overlap has run out, the next rotation needs no force", async () => {
  const { t, source, rotate } = await createSource();
  await rotate();
  await shardsOf(env as Env)
    .get(t.shard)!
    .prepare("update source set previous_valid_until = ? where tenant_id = ? and id = ?")
    .bind(Date.now(), t.id, source.id)
    .run();
  expect((await rotate()).status).toBe(201);
});

test("of many rotations at once, one happens", async () => {
  const { t, path, rotate } = await createSource();
  const answers = await Promise.all(Array.from({ length: 5 }, () => rotate({})));
  expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 409, 409, 409, 409]);
  expect((await t.api.get(path)).body.signing_key_version).toBe(2);
});

test("of many forced rotations at once each makes a key, one after the other", async () => {
  const { t, path, rotate } = await createSource();
  const answers = await Promise.all(Array.from({ length: 4 }, () => rotate({ force: true })));
  expect(answers.map(({ body }) => body.signing_key_version).toSorted()).toEqual([2, 3, 4, 5]);
  expect((await t.api.get(path)).body.signing_key_version).toBe(5);
});

test("a source from before there were keys counts none, and a rotation gives it its first", async () => {
  const { t, source, path, rotate } = await createSource();
  await shardsOf(env as Env)
    .get(t.shard)!
    .prepare("update source set signing_key = null, signing_key_version = 0 where tenant_id = ? and id = ?")
    .bind(t.id, source.id)
    .run();
  expect((await t.api.get(path)).body).toEqual({ ...source, signing_key_version: 0 });
  expect(await rotate()).toMatchObject({
    status: 201,
    body: { signing_key: expect.stringMatching(KEY), signing_key_version: 1, previous_valid_until: null },
  });
});

test.each([
  [{ kind: "api_key" }, "validation_failed", "kind"],
  [{ overlap_hours: 23 }, "validation_failed", "overlap_hours"],
  [{ overlap_hours: 73 }, "validation_failed", "overlap_hours"],
  [{ overlap_hours: "24" }, "validation_failed", "overlap_hours"],
  [{ force: "yes" }, "validation_failed", "force"],
  [{ overlap: 24 }, "validation_failed", "overlap"],
])("rotation %j is refused, the field named, and the key stays", async (body, code, path) => {
  const { t, source, rotate } = await createSource();
  const before = await rowOf(t, source.id);
  expect(await rotate(body)).toMatchObject({ status: 422, body: { code, errors: [{ path }] } });
  expect(await rowOf(t, source.id)).toEqual(before);
});

test("a deleted source has no key to rotate", async () => {
  const { t, path, rotate } = await createSource();
  await t.api.delete(path);
  expect(await rotate()).toMatchObject({ status: 404, body: { code: "not_found" } });
});
