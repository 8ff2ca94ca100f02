import { env } from "cloudflare:workers";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { parseDeliveryId } from "../../../src/core/ids.ts";
import { countingEnv, createCost } from "../support/counting.ts";
import { URL, soon, read, failingSince, endpoint, begin, fail, succeed } from "../support/failing.ts";
import { createScene } from "../support/scene.ts";
import { deliverDeps } from "../support/worker.ts";

let status = 200;
beforeEach(() => {
  status = 200;
  vi.spyOn(globalThis, "fetch").mockImplementation(async () => new Response("ok", { status }));
});
afterEach(() => vi.restoreAllMocks());

test("the first failure starts the clock, later ones leave it, a success stops it; no revision moves", async () => {
  const scene = await createScene();
  const at = soon();
  const before = await read(scene);
  await succeed(scene, at);
  expect(await read(scene)).toEqual(before);
  await fail(scene, at + 1_000);
  await fail(scene, at + 2_000);
  expect(await read(scene)).toEqual({ ...before, failing_since: at + 1_000, failure_noted_at: at + 1_000 });
  expect(await endpoint(scene)).toMatchObject({ state: "active", failing_since: new Date(at + 1_000).toISOString() });
  await succeed(scene, at + 3_000);
  expect(await read(scene)).toEqual(before);
});

test("a clock that does not move costs a close no row, and one read; its start and its stop write one", async () => {
  const scene = await createScene();
  const cost = createCost();
  const deps = deliverDeps(scene.tenant, scene.context, countingEnv(env as Env, cost));
  const costOf = async (statusCode: number, at: number) => {
    const { end } = await begin(scene, at);
    const { rowsRead, rowsWritten } = cost;
    await end(statusCode, deps);
    return [cost.rowsWritten - rowsWritten, cost.rowsRead - rowsRead];
  };
  const withoutClock = async (statusCode: number, at: number) => {
    const { end } = await begin(scene, at);
    const before = { ...cost };
    await end(statusCode, {
      ...deps,
      closeAttempts: (closings) => deps.closeAttempts(closings.map((closing) => ({ ...closing, clock: null }))),
    });
    return [cost.rowsWritten - before.rowsWritten, cost.rowsRead - before.rowsRead];
  };
  const at = soon();
  const [writes, reads] = await withoutClock(200, at);
  const [failureWrites, failureReads] = await withoutClock(422, at + 1);
  expect(await costOf(200, at + 2)).toEqual([writes, reads! + 1]);
  const [startWrites] = await costOf(422, at + 3);
  expect(startWrites).toBe(failureWrites! + 1);
  expect(await costOf(422, at + 4)).toEqual([failureWrites, failureReads! + 1]);
  expect(await costOf(200, at + 5)).toEqual([writes! + 1, reads! + 1]);
  expect(await costOf(200, at + 6)).toEqual([writes, reads! + 1]);
});

test("a failure told twice, or late in the place of abandoned, starts nothing; a success does what it did once", async () => {
  const scene = await createScene();
  const at = soon();
  const failed = await begin(scene, at);
  await failed.end(422);
  const succeeded = await begin(scene, at + 1_000);
  await succeeded.end(200);
  await failed.end(422);
  expect(await failingSince(scene)).toBeNull();

  const abandoned = await begin(scene, at + 2_000);
  await abandoned.endAs({ kind: "abandoned" });
  expect(await failingSince(scene)).toBeNull();
  await abandoned.end(422);
  expect((await abandoned.delivery.read()).attempts).toMatchObject([{ status_code: 422 }]);
  expect(await failingSince(scene)).toBeNull();

  await fail(scene, at + 3_000);
  await succeeded.end(200);
  expect(await failingSince(scene)).toBe(at + 3_000);
});

test("a success that is told late stops what had begun before its request, and nothing that began after", async () => {
  const scene = await createScene();
  const at = soon();
  const slow = await begin(scene, at);
  const late = await begin(scene, at + 2_000);
  await fail(scene, at + 1_000);
  await slow.end(200);
  expect(await failingSince(scene)).toBe(at + 1_000);
  await late.endAs({ kind: "abandoned" });
  expect(await failingSince(scene)).toBe(at + 1_000);
  await late.end(200);
  expect(await failingSince(scene)).toBeNull();
});

test("a failure that a success overtook starts nothing, be it a first attempt or a retry of something old", async () => {
  const scene = await createScene();
  const at = soon();
  const slow = await begin(scene, at);
  await succeed(scene, at + 1_000);
  await slow.endAs({ kind: "timeout", status: null });
  expect(await failingSince(scene)).toBeNull();

  // Nothing of what stands next to the old one says anything; what was published since its request does.
  for (let i = 0; i < 25; i++) await scene.publishOne();
  const retryAt = Date.now();
  const backdate = (sql: string) =>
    scene.db.prepare(`update delivery set ${sql}`).bind(scene.tenant.id, slow.delivery.ref.eventId, retryAt);
  await scene.db.batch([
    backdate("created_at = ?3 - 2000, next_attempt_at = ?3 where tenant_id = ?1 and event_id = ?2"),
    backdate("created_at = ?3 - 1000, last_attempt_at = null where tenant_id = ?1 and event_id <> ?2"),
  ]);
  const retry = await begin(scene, retryAt, slow.delivery, 2);
  await succeed(scene, retryAt + 1_000);
  await retry.end(422);
  expect(await failingSince(scene)).toBeNull();
  await scene.db
    .prepare("update delivery set status = 'cancelled', terminal_at = 1 where tenant_id = ? and terminal_at is null")
    .bind(scene.tenant.id)
    .run();
});

test("faults of ours and test sends neither start nor stop it; a replay does both", async () => {
  const scene = await createScene();
  const { tenant, endpointId } = scene;
  const testSend = () => tenant.api.post(`/v1/endpoints/${endpointId}/test`);
  const at = soon();
  await (await begin(scene, at)).endAs({ kind: "internal" });
  status = 500;
  expect((await testSend()).body).toMatchObject({ outcome_class: "transient" });
  expect(await failingSince(scene)).toBeNull();

  const failed = await begin(scene, at + 1_000);
  await failed.end(422);
  status = 200;
  expect((await testSend()).body).toMatchObject({ outcome_class: "success" });
  expect(await failingSince(scene)).toBe(at + 1_000);

  const replay = async () => {
    const { id } = (await tenant.api.post(`/v1/deliveries/${failed.delivery.id}/replay`)).body;
    const ref = parseDeliveryId(id);
    if (!ref.ok) throw new Error(id);
    return { ...failed.delivery, id, ref: { tenantId: tenant.id, ...ref.value } };
  };
  await (await begin(scene, at + 2_000, await replay())).end(200);
  expect(await failingSince(scene)).toBeNull();
  await (await begin(scene, at + 3_000, await replay())).end(422);
  expect(await failingSince(scene)).toBe(at + 3_000);
});

test("another URL and an enable start it anew; what the old URL answered meanwhile says nothing", async () => {
  const scene = await createScene();
  const { tenant, endpointId } = scene;
  const path = `/v1/endpoints/${endpointId}`;
  const at = soon();
  for (const change of [{ url: "https://moved.example/" }, { url: URL, timeout_ms: 20_000 }]) {
    await fail(scene, at);
    const [failing, succeeding] = [await begin(scene, at + 1), await begin(scene, at + 4)];
    expect(
      (await tenant.api.patch(path, { name: "renamed", concurrency_cap: null })).body.failing_since,
    ).not.toBeNull();
    expect((await tenant.api.patch(path, change)).body).toMatchObject({ ...change, failing_since: null });
    await failing.end(422);
    expect(await failingSince(scene)).toBeNull();
    await fail(scene, at + 2);
    await succeeding.end(200);
    expect(await failingSince(scene)).toBe(at + 2);
    await succeed(scene, at + 6);
  }
  await fail(scene, at + 7);
  expect((await tenant.api.post(`${path}/disable`)).body.failing_since).not.toBeNull();
  expect((await tenant.api.post(`${path}/enable`)).body).toMatchObject({ failing_since: null, disabled_reason: null });
});
