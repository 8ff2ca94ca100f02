import { env } from "cloudflare:workers";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { recordAttempt } from "../../../src/app/deliver/record-attempt.ts";
import type { AttemptReport } from "../../../src/app/deliver/report.ts";
import { createWatchState, tick } from "../../../src/app/watch/tick.ts";
import { parseDeliveryId } from "../../../src/core/ids.ts";
import { createLaneFixture } from "../lane/support.ts";
import { answered, claim, report } from "../support/closing.ts";
import { countingEnv, createCost } from "../support/counting.ts";
import { createScene, type Scene, type SceneDelivery } from "../support/scene.ts";
import { createWatchdog, EVERYTHING } from "../support/watch.ts";
import { attempt, deliverDeps } from "../support/worker.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const URL = "https://consumer.example/hook";

/** A moment at which all that a test publishes is due. */
const soon = () => Date.now() + 60_000;

let status = 200;
beforeEach(() => {
  status = 200;
  vi.spyOn(globalThis, "fetch").mockImplementation(async () => new Response("ok", { status }));
});
afterEach(() => vi.restoreAllMocks());

interface Row {
  failing_since: number | null;
  failure_noted_at: number | null;
  disabled_at: number | null;
  disabled_reason: string | null;
  revision: number;
  tenant_revision: number;
}

const read = async ({ db, endpointId }: Pick<Scene, "db" | "endpointId">) =>
  (await db
    .prepare(
      `select failing_since, failure_noted_at, disabled_at, disabled_reason, e.revision, t.revision as tenant_revision
       from endpoint e join tenant t on t.id = e.tenant_id where e.id = ?`,
    )
    .bind(endpointId)
    .first<Row>())!;
const failingSince = async (scene: Pick<Scene, "db" | "endpointId">) => (await read(scene)).failing_since;
const firstRequestAt = ({ db, endpointId }: Scene) =>
  db.prepare("select min(requested_at) as at from attempt where endpoint_id = ?").bind(endpointId).first<number>("at");
const endpoint = async ({ tenant, endpointId }: Scene) => (await tenant.api.get(`/v1/endpoints/${endpointId}`)).body;

/** Under way since `at`; how it ends is for the test to tell. A 422 ends its delivery, so that no work is left. */
async function begin(scene: Scene, at: number, of?: SceneDelivery, n = 1) {
  const delivery = of ?? (await scene.publishOne());
  const token = crypto.randomUUID();
  await claim(scene, delivery, n, token, at);
  // As it is loaded for its claim.
  const [loaded] = (await scene.deps.loadDeliveries([delivery.ref])).deliveries;
  const { disablesAt, url: endpointUrl } = loaded!.endpoint;
  const told = (wire: AttemptReport["wire"]): AttemptReport => {
    return { ...report(delivery, n, token, wire), requestedAt: at, respondedAt: at + 5, endpointUrl, disablesAt };
  };
  return {
    delivery,
    endAs: (wire: AttemptReport["wire"], deps = scene.deps) => recordAttempt(deps, told(wire)),
    end: (statusCode: number, deps = scene.deps) => recordAttempt(deps, told(answered(statusCode))),
  };
}
const fail = async (scene: Scene, at: number) => (await begin(scene, at)).end(422);
const succeed = async (scene: Scene, at: number) => (await begin(scene, at)).end(200);

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

test("nothing but failures for five days disables the endpoint, by the failure that is told then", async () => {
  const scene = await createScene();
  const at = soon();
  const before = await read(scene);
  for (let day = 0; day < 5; day++) await fail(scene, at + day * DAY_MS);
  await fail(scene, at + 5 * DAY_MS - 1);
  expect(await read(scene)).toMatchObject({ disabled_at: null, revision: before.revision });
  const meanwhile = await begin(scene, at + 5 * DAY_MS - 1);
  await fail(scene, at + 5 * DAY_MS);
  expect(await read(scene)).toMatchObject({
    failing_since: at,
    disabled_at: at + 5 * DAY_MS + 5,
    disabled_reason: "failing",
    revision: before.revision + 1,
    tenant_revision: before.tenant_revision + 1,
  });
  const { body } = await scene.tenant.api.get(`/v1/endpoints/${scene.endpointId}`);
  expect(body).toMatchObject({ state: "disabled", disabled_reason: "failing", last_disabled_at: body.disabled_at });

  // What was under way ends on record, and moves nothing more.
  await meanwhile.end(422);
  expect((await meanwhile.delivery.read()).status).toBe("dead_letter");
  expect(await read(scene)).toMatchObject({
    revision: before.revision + 1,
    tenant_revision: before.tenant_revision + 1,
  });
});

test("what is pending when it is disabled is held and goes on, and what came meanwhile is brought by a replay", async () => {
  const scene = await createScene({ disable_after_failing_seconds: 3_600 });
  const { tenant, context, deps, endpointId } = scene;
  const at = soon();
  await fail(scene, at);
  const waiting = await scene.publishOne();
  await fail(scene, at + HOUR_MS);
  expect(await endpoint(scene)).toMatchObject({ state: "disabled", disabled_reason: "failing" });
  const missed = await scene.publishOne();
  expect(await missed.read()).toMatchObject({ status: "failed", final_outcome: "endpoint_disabled" });
  await attempt(deps, context, waiting.call(1));
  expect(await waiting.read()).toMatchObject({ status: "pending", attempt_count: 0 });

  await tenant.api.post(`/v1/endpoints/${endpointId}/enable`);
  await attempt(deps, context, waiting.call(1));
  expect(await waiting.read()).toMatchObject({ status: "succeeded" });
  const { id } = (await tenant.api.post(`/v1/deliveries/${missed.id}/replay`)).body;
  await attempt(deps, context, { tenantId: tenant.id, deliveryId: id, attemptNumber: 1 });
  expect((await tenant.api.get(`/v1/deliveries/${id}`)).body).toMatchObject({ status: "succeeded" });
  expect(await endpoint(scene)).toMatchObject({ state: "active", failing_since: null });
});

test("lone failures do not disable: after two days without any the next one begins anew", async () => {
  const scene = await createScene();
  const at = soon();
  await fail(scene, at);
  await fail(scene, at + 5 * DAY_MS);
  expect(await read(scene)).toMatchObject({ failing_since: at + 5 * DAY_MS, disabled_at: null });
  // Once every two days is nothing but failures all the same.
  await fail(scene, at + 7 * DAY_MS);
  await fail(scene, at + 9 * DAY_MS);
  expect(await read(scene)).toMatchObject({ failing_since: at + 5 * DAY_MS, disabled_at: null });
  await fail(scene, at + 11 * DAY_MS);
  expect(await read(scene)).toMatchObject({ disabled_reason: "failing" });
});

test.each<[string, (scene: Scene, at: number) => Promise<unknown>]>([
  ["a success", (scene, at) => succeed(scene, at)],
  ["another URL", ({ tenant, endpointId }) => tenant.api.patch(`/v1/endpoints/${endpointId}`, { url: `${URL}/new` })],
  [
    "a disable and an enable",
    async ({ tenant, endpointId }) => {
      await tenant.api.post(`/v1/endpoints/${endpointId}/disable`);
      await tenant.api.post(`/v1/endpoints/${endpointId}/enable`);
    },
  ],
  [
    "a longer time",
    ({ tenant, endpointId }) =>
      tenant.api.patch(`/v1/endpoints/${endpointId}`, { disable_after_failing_seconds: 7_200 }),
  ],
  [
    "no time at all",
    ({ tenant, endpointId }) =>
      tenant.api.patch(`/v1/endpoints/${endpointId}`, { disable_after_failing_seconds: null, timeout_ms: 9_000 }),
  ],
])("%s while the last failure was under way keeps the endpoint enabled", async (_name, intervene) => {
  const scene = await createScene({ disable_after_failing_seconds: 3_600 });
  const at = soon();
  await fail(scene, at);
  const last = await begin(scene, at + HOUR_MS);
  await intervene(scene, at + HOUR_MS - 1);
  await last.end(422);
  expect(await endpoint(scene)).toMatchObject({ state: "active", disabled_at: null });
});

test("a failure told twice disables once; after an enable it disables nothing", async () => {
  const scene = await createScene({ disable_after_failing_seconds: 3_600 });
  const at = soon();
  await fail(scene, at);
  const last = await begin(scene, at + HOUR_MS);
  await last.end(422);
  const disabled = await read(scene);
  expect(disabled.disabled_reason).toBe("failing");
  await last.end(422);
  expect(await read(scene)).toEqual(disabled);
  await scene.tenant.api.post(`/v1/endpoints/${scene.endpointId}/enable`);
  await last.end(422);
  expect(await read(scene)).toMatchObject({ disabled_at: null, failing_since: null });
});

test("of two last failures told together one disables; a 410 among them says why", async () => {
  const scene = await createScene({ disable_after_failing_seconds: 3_600 });
  const at = soon();
  await fail(scene, at);
  const before = await read(scene);
  const [gone, failing] = [await begin(scene, at + HOUR_MS), await begin(scene, at + HOUR_MS)];
  await gone.end(410);
  await failing.end(422);
  expect(await read(scene)).toMatchObject({
    disabled_reason: "gone",
    revision: before.revision + 1,
    tenant_revision: before.tenant_revision + 1,
  });
});

test("a first failure that will be retried starts no clock, and counts for one that runs", async () => {
  const scene = await createScene({ disable_after_failing_seconds: 3_600 });
  const at = soon();
  const mended = await begin(scene, at);
  await mended.end(503);
  expect(await failingSince(scene)).toBeNull();
  await (await begin(scene, at + 60_000, mended.delivery, 2)).end(200);
  await fail(scene, at + 61_000);
  const last = await begin(scene, at + 61_000 + HOUR_MS);
  await last.end(503);
  expect(await endpoint(scene)).toMatchObject({ disabled_reason: "failing" });
  await scene.tenant.api.post(`/v1/deliveries/${last.delivery.id}/cancel`);
});

test("attempts of a queue, made from a doorbell, move it and disable", async () => {
  const scene = await createScene({
    disable_after_failing_seconds: 3_600,
    retry_policy: { max_attempts: 3, delays_seconds: [1, 3_600], jitter: 0 },
  });
  const { context, deps } = scene;
  const delivery = await scene.publishOne();
  const at = soon();
  const ahead = (ms: number) => ({ ...deps, now: () => at + ms });
  status = 503;
  await attempt(ahead(1), context, delivery.call(1));
  // A retry may mend it.
  expect(await failingSince(scene)).toBeNull();
  await attempt(ahead(2_000), context, delivery.call(2));
  expect(await failingSince(scene)).toBe(at + 2_000);
  await attempt(ahead(HOUR_MS + 2_000), context, delivery.call(3));
  expect(await delivery.read()).toMatchObject({ status: "dead_letter", final_outcome: "exhausted" });
  expect(await endpoint(scene)).toMatchObject({ disabled_reason: "failing" });
});

test("a lane that closes and claims in one trip moves it, and makes no request after the one that disables", async () => {
  const fixture = await createLaneFixture({ disable_after_failing_seconds: 3_600 });
  const lane = fixture.createLane();
  fixture.answer = () => new Response(null, { status: 422 });
  await fixture.publishAll(["k/0", "k/1"]);
  await lane.run();
  expect(await failingSince(fixture)).toBe(await firstRequestAt(fixture));
  fixture.forward(HOUR_MS);
  await fixture.publishAll(["k/2", "k/3"]);
  await lane.run();
  expect(fixture.sent.map(({ name }) => name)).toEqual(["k/0", "k/1", "k/2"]);
  expect(await endpoint(fixture)).toMatchObject({ state: "disabled", disabled_reason: "failing" });

  await fixture.tenant.api.post(`/v1/endpoints/${fixture.endpointId}/enable`);
  fixture.answer = () => new Response("ok");
  await lane.run();
  expect(fixture.sent.at(-1)!.name).toBe("k/3");
  expect(await failingSince(fixture)).toBeNull();
});

test("a close whose answer was lost is told again by its lane, and counts once", async () => {
  const fixture = await createLaneFixture();
  fixture.answer = ({ name }) => new Response(null, { status: name === "k/0" ? 422 : 200 });
  await fixture.publishAll(["k/0", "k/1"]);
  const moves: (number | null)[] = [];
  const lane = fixture.createLane("a", 0, (deps) => ({
    ...deps,
    async closeAndClaim(...args) {
      await deps.closeAndClaim(...args);
      moves.push(await failingSince(fixture));
      const again = await deps.closeAndClaim(...args);
      moves.push(await failingSince(fixture));
      return again;
    },
  }));
  await lane.run();
  const since = await firstRequestAt(fixture);
  expect(moves.slice(0, 2)).toEqual([since, since]);
  expect(await failingSince(fixture)).toBeNull();
});

test("a lease that the watchdog takes back moves nothing, not even past the time", async () => {
  const scene = await createScene({ disable_after_failing_seconds: 3_600 });
  const at = soon();
  const lost = await begin(scene, at);
  const { real, idle, mine } = createWatchdog(scene);
  const recover = (now: number) =>
    tick(
      {
        ...idle,
        now: () => now,
        listExpiredLeases: async (until) => mine(await real.listExpiredLeases(until, EVERYTHING)),
        ringNow: async () => {},
        ringLater: () => {},
      },
      createWatchState(now),
    );
  await recover(at + 2_000);
  expect(await lost.delivery.read()).toMatchObject({ attempts: [{ error_class: "abandoned" }] });
  expect(await failingSince(scene)).toBeNull();

  await fail(scene, at + 3_000);
  await begin(scene, at + 2 * HOUR_MS, lost.delivery, 2);
  await recover(at + 3 * HOUR_MS);
  expect((await lost.delivery.read()).attempts).toMatchObject([{}, { error_class: "abandoned" }]);
  expect(await read(scene)).toMatchObject({ disabled_at: null, failing_since: at + 3_000 });
  await scene.tenant.api.post(`/v1/deliveries/${lost.delivery.id}/cancel`);
});
