import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createWatchState, tick } from "../../../src/app/watch/tick.ts";
import { createLaneFixture } from "../lane/support.ts";
import {
  HOUR_MS,
  DAY_MS,
  URL,
  soon,
  read,
  failingSince,
  firstRequestAt,
  endpoint,
  begin,
  fail,
  succeed,
} from "../support/failing.ts";
import { createScene, type Scene } from "../support/scene.ts";
import { createWatchdog, EVERYTHING } from "../support/watch.ts";
import { attempt } from "../support/worker.ts";

let status = 200;
beforeEach(() => {
  status = 200;
  vi.spyOn(globalThis, "fetch").mockImplementation(async () => new Response("ok", { status }));
});
afterEach(() => vi.restoreAllMocks());

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
