import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { DeliverDeps } from "../../../src/app/deliver/deliver.ts";
import { relaySourceId } from "../../../src/core/relay-source.ts";
import { createApi } from "../support/api.ts";
import { countingEnv, createCost } from "../support/counting.ts";
import { createScene, type Scene } from "../support/scene.ts";
import { attempt, deliverDeps } from "../support/worker.ts";

interface Request {
  headers: Headers;
  body: Uint8Array;
}

const requests: Request[] = [];
beforeEach(() => {
  requests.length = 0;
  vi.spyOn(globalThis, "fetch").mockImplementation(async (_, init) => {
    requests.push({ headers: new Headers(init!.headers), body: init!.body as Uint8Array });
    return new Response("ok");
  });
});
afterEach(() => vi.restoreAllMocks());

const ASKS = { source_signatures: true };
const HOUR_MS = 3_600_000;

const sourceOf = async ({ tenant }: Scene) => (await tenant.api.get("/v1/sources")).body.data[0].id as string;
const rotate = async (scene: Scene, body: Record<string, unknown> = {}) =>
  scene.tenant.api.post(`/v1/sources/${await sourceOf(scene)}/rotate-key`, { kind: "delivery_key", ...body });

async function publicKeys(sourceId: string): Promise<string[]> {
  const { body } = await createApi(null).get(`/.well-known/webhook-keys/${sourceId}`);
  return body.keys.map(({ public_key }: any) => public_key);
}

const bytes = (base64: string) => Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));

/** Which of these keys each signature of `v1a` is by: -1 for none of them. */
async function signers({ headers, body }: Request, keys: string[]): Promise<number[]> {
  const head = new TextEncoder().encode(`${headers.get("webhook-id")}.${headers.get("webhook-timestamp")}.`);
  const signed = new Uint8Array([...head, ...body]);
  const imported = await Promise.all(
    keys.map((key) => crypto.subtle.importKey("raw", bytes(key.slice("whpk_".length)), "Ed25519", false, ["verify"])),
  );
  const signatures = headers
    .get("webhook-signature")!
    .split(" ")
    .filter((one) => one.startsWith("v1a,"));
  return Promise.all(
    signatures.map(async (one) => {
      const verdicts = imported.map((key) => crypto.subtle.verify("Ed25519", key, bytes(one.slice(4)), signed));
      return (await Promise.all(verdicts)).indexOf(true);
    }),
  );
}

async function sendOne(scene: Scene, deps: DeliverDeps = scene.deps): Promise<Request> {
  const delivery = await scene.publishOne();
  await attempt(deps, scene.context, delivery.call(1));
  expect(await delivery.read()).toMatchObject({ status: "succeeded", attempt_count: 1 });
  expect(requests).toHaveLength(1);
  return requests.pop()!;
}

async function forgetKey(scene: Scene): Promise<void> {
  await scene.db
    .prepare(
      `update source set delivery_key = null, delivery_public_key = null, delivery_key_version = 0 where tenant_id = ?`,
    )
    .bind(scene.tenant.id)
    .run();
}

test("an endpoint that asks gets one signature of the source beside that of its secret, and is told whose", async () => {
  const scene = await createScene(ASKS);
  const request = await sendOne(scene);
  const sourceId = await sourceOf(scene);
  expect(request.headers.get("webhook-signature")).toMatch(/^v1,[^ ]+ v1a,[^ ]+$/);
  expect(await signers(request, await publicKeys(sourceId))).toEqual([0]);
  expect(request.headers.get("x-webhook-source-id")).toBe(sourceId);
});

test("an endpoint that does not ask gets neither; what it is changed to holds from the next attempt on", async () => {
  const scene = await createScene();
  const before = await sendOne(scene);
  expect(before.headers.get("webhook-signature")).toMatch(/^v1,[^ ]+$/);
  expect(before.headers.has("x-webhook-source-id")).toBe(false);

  const path = `/v1/endpoints/${scene.endpointId}`;
  const changed = await scene.tenant.api.patch(path, ASKS);
  expect(changed.body).toMatchObject({ source_signatures: true, revision: 2 });
  expect(await signers(await sendOne(scene), await publicKeys(await sourceOf(scene)))).toEqual([0]);
  // Beside settings that go through another statement.
  await scene.tenant.api.patch(path, { on_exhausted: "block" });
  expect((await scene.tenant.api.get(path)).body.source_signatures).toBe(true);
  await scene.tenant.api.patch(path, { on_exhausted: "advance", source_signatures: false });
  expect((await sendOne(scene)).headers.get("webhook-signature")).not.toContain("v1a");
});

test.each([["yes"], [1], [null]])("source_signatures %j is refused, and the field named", async (source_signatures) => {
  const { tenant, endpointId } = await createScene();
  const expected = { status: 422, body: { code: "validation_failed", errors: [{ path: "source_signatures" }] } };
  const url = "https://consumer.example/hook";
  expect(await tenant.api.post("/v1/endpoints", { url, source_signatures })).toMatchObject(expected);
  expect(await tenant.api.patch(`/v1/endpoints/${endpointId}`, { source_signatures })).toMatchObject(expected);
});

test("while a rotation overlaps both keys sign: who has the old list verifies, and who has the new one too", async () => {
  const scene = await createScene(ASKS);
  const sourceId = await sourceOf(scene);
  const before = await publicKeys(sourceId);
  await rotate(scene);
  const after = await publicKeys(sourceId);
  const request = await sendOne(scene);
  expect(await signers(request, before)).toEqual([-1, 0]);
  expect(await signers(request, after)).toEqual([0, 1]);
});

test("a delivery that was loaded before a rotation, and sent after it, is verified by the list of either moment", async () => {
  const scene = await createScene(ASKS);
  const sourceId = await sourceOf(scene);
  const before = await publicKeys(sourceId);
  const request = await sendOne(scene, {
    ...scene.deps,
    async claimDeliveries(...claims) {
      expect((await rotate(scene)).status).toBe(200);
      return scene.deps.claimDeliveries(...claims);
    },
  });
  expect(await signers(request, before)).toEqual([0]);
  expect(await signers(request, await publicKeys(sourceId))).toEqual([1]);
});

test("when the overlap has ended the older key signs no more, while both are still read", async () => {
  const scene = await createScene(ASKS);
  const { body } = await rotate(scene);
  const until = Date.parse(body.delivery_key_previous_valid_until);
  const keys = await publicKeys(await sourceOf(scene));
  const at = (now: number) => sendOne(scene, { ...scene.deps, now: () => now });
  expect(await signers(await at(until - 1), keys)).toEqual([0, 1]);
  expect(await signers(await at(until), keys)).toEqual([0]);
  expect(await signers(await at(until + HOUR_MS), keys)).toEqual([0]);
});

test("a key that was ended by force signs nothing that is loaded after it, and is not read", async () => {
  const scene = await createScene(ASKS);
  const [leaked] = await publicKeys(await sourceOf(scene));
  await rotate(scene);
  await rotate(scene, { force: true });
  const keys = await publicKeys(await sourceOf(scene));
  expect(keys).not.toContain(leaked);
  const request = await sendOne(scene);
  expect(await signers(request, keys)).toEqual([0, 1]);
  expect(await signers(request, [leaked!])).toEqual([-1, -1]);
});

test("test sends and replays are signed: of the relay's own source the first makes the key", async () => {
  const scene = await createScene(ASKS);
  const own = relaySourceId(scene.tenant.id);
  expect((await createApi(null).get(`/.well-known/webhook-keys/${own}`)).status).toBe(404);
  expect((await scene.tenant.api.post(`/v1/endpoints/${scene.endpointId}/test`)).status).toBe(200);
  const [sent] = requests.splice(0);
  expect(sent!.headers.get("x-webhook-source-id")).toBe(own);
  expect(await signers(sent!, await publicKeys(own))).toEqual([0]);
  // The row that holds the key is in no list, and no name is taken.
  expect((await scene.tenant.api.get("/v1/sources")).body.data).toHaveLength(1);
  expect((await scene.tenant.api.get(`/v1/sources/${own}`)).status).toBe(404);
  // It is rotated like any other's.
  expect((await scene.tenant.api.post(`/v1/sources/${own}/rotate-key`, { kind: "delivery_key" })).status).toBe(200);
  await scene.tenant.api.post(`/v1/endpoints/${scene.endpointId}/test`);
  expect(await signers(requests.pop()!, await publicKeys(own))).toEqual([0, 1]);

  const delivery = await scene.publishOne();
  await attempt(scene.deps, scene.context, delivery.call(1));
  const { body: replay } = await scene.tenant.api.post(`/v1/deliveries/${delivery.id}/replay`);
  await attempt(scene.deps, scene.context, { tenantId: scene.tenant.id, deliveryId: replay.id, attemptNumber: 1 });
  const keys = await publicKeys(await sourceOf(scene));
  for (const request of requests) expect(await signers(request, keys)).toEqual([0]);
  expect(new Set(requests.map(({ headers }) => headers.get("webhook-id"))).size).toBe(1);
});

describe("a source from before there were keys", () => {
  test("gets its key with the first request that is to be signed, once, however many there are at the same moment", async () => {
    const scene = await createScene(ASKS);
    const sourceId = await sourceOf(scene);
    const deliveries = await Promise.all([1, 2, 3, 4].map(() => scene.publishOne()));
    await forgetKey(scene);
    await Promise.all(deliveries.map((one) => attempt(scene.deps, scene.context, one.call(1))));
    expect(requests).toHaveLength(4);
    const keys = await publicKeys(sourceId);
    expect(keys).toHaveLength(1);
    for (const request of requests) expect(await signers(request, keys)).toEqual([0]);
    expect((await scene.tenant.api.get(`/v1/sources/${sourceId}`)).body.delivery_key_version).toBe(1);
  });

  test("sends nothing without it: while it cannot be stored the delivery waits, and has spent nothing", async () => {
    const scene = await createScene(ASKS);
    await forgetKey(scene);
    const faults: unknown[] = [];
    const away = async () => Promise.reject(new Error("D1 is away"));
    const deps = {
      ...scene.deps,
      makeDeliveryKey: away,
      logFault: (_: string, error: unknown) => void faults.push(error),
    };
    const delivery = await scene.publishOne();
    await attempt(deps, scene.context, delivery.call(1));
    expect(requests).toEqual([]);
    expect(faults).not.toEqual([]);
    expect(await delivery.read()).toMatchObject({ status: "pending", attempt_count: 0, attempts: [] });
    await attempt(scene.deps, scene.context, delivery.call(1));
    expect(await signers(requests[0]!, await publicKeys(await sourceOf(scene)))).toEqual([0]);
  });
});

test("a key that was moved to another source, or altered, signs nothing, and no log says what it is", async () => {
  const scene = await createScene(ASKS);
  const logged = vi.spyOn(console, "error").mockImplementation(() => {});
  await scene.tenant.api.post("/v1/sources", { name: "other" });
  await scene.db
    .prepare(
      `update source set delivery_key = (select o.delivery_key from source o where o.tenant_id = ?1 and o.name = 'other')
       where tenant_id = ?1 and name = 'orders'`,
    )
    .bind(scene.tenant.id)
    .run();
  const delivery = await scene.publishOne();
  await attempt(scene.deps, scene.context, delivery.call(1));
  expect(requests).toEqual([]);
  expect(await delivery.read()).toMatchObject({ status: "pending", attempt_count: 0 });
  expect(JSON.stringify(logged.mock.calls)).toContain("delivery key 1");
});

test("a signature takes no row and no trip more, and the sources' keys no row read more", async () => {
  const cost = async (endpoint: Record<string, unknown>) => {
    const scene = await createScene(endpoint);
    const counted = createCost();
    await sendOne(scene, deliverDeps(scene.tenant, scene.context, countingEnv(env as Env, counted)));
    return counted;
  };
  expect(await cost(ASKS)).toEqual(await cost({}));
});
