import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createWatchState, tick, type WatchDeps } from "../../../src/app/watch/tick.ts";
import { createLaneFixture } from "../lane/support.ts";
import { createApi, operatorToken } from "../support/api.ts";
import { createScene, gate, type Scene } from "../support/scene.ts";
import { createWatchdog, EVERYTHING } from "../support/watch.ts";
import { attempt } from "../support/worker.ts";

const MINUTE_MS = 60_000;
const operator = createApi(operatorToken);

let requests = 0;
beforeEach(() => {
  requests = 0;
  vi.spyOn(globalThis, "fetch").mockImplementation(async () => {
    requests++;
    return new Response("ok");
  });
});
afterEach(() => vi.restoreAllMocks());

async function setStatus({ tenant }: Pick<Scene, "tenant">, status: "suspended" | "active") {
  const { body } = await operator.patch(`/v1/tenants/${tenant.id}`, { status });
  expect(body.status).toBe(status);
}

/** The status alone, as a reactivation leaves it that died before it let anything go on. */
async function reactivateOnly({ db, tenant }: Scene): Promise<void> {
  const sql = "update tenant set status = 'active', suspended_at = null, resumed_at = ? where id = ?";
  await db.prepare(sql).bind(Date.now(), tenant.id).run();
}

async function rowOf({ db }: Scene, { ref }: Awaited<ReturnType<Scene["publishOne"]>>) {
  const sql = "select * from delivery where tenant_id = ? and event_id = ?";
  return (await db.prepare(sql).bind(ref.tenantId, ref.eventId).first<Record<string, any>>())!;
}

/** Leaves no due work to the watchdog of this runtime. */
const end = ({ tenant, endpointId }: Scene) => tenant.api.delete(`/v1/endpoints/${endpointId}`);

/** A watchdog that sees one tenant's work. */
function createWatch(scene: Scene) {
  const rung: unknown[] = [];
  const woken: unknown[] = [];
  let aheadMs = 0;
  const { real, idle, mine } = createWatchdog(scene);
  const deps: WatchDeps = {
    ...idle,
    now: () => Date.now() + aheadMs,
    listEndedHolds: async (now) => mine(await real.listEndedHolds(now, EVERYTHING)),
    listStrandedHolds: async () => {
      const { endpoints } = await real.listStrandedHolds(null, EVERYTHING);
      return { endpoints: mine(endpoints), next: null };
    },
    listOverdueLanes: async (after, until) => {
      const { lanes } = await real.listOverdueLanes(after, until, EVERYTHING);
      return { lanes: mine(lanes), next: null };
    },
    wakeLane: ({ endpointId }) => void woken.push(endpointId),
    ringLater: (calls) => void rung.push(...calls),
    ringNow: async () => {},
  };
  const state = createWatchState(Date.now());
  return { rung, woken, forward: (ms: number) => void (aheadMs += ms), tick: () => tick(deps, state) };
}

test("once a suspension has answered no attempt starts, though its delivery was loaded before", async () => {
  const scene = await createScene();
  const delivery = await scene.publishOne();
  const [loaded, suspended] = [gate(), gate()];
  const deps: typeof scene.deps = {
    ...scene.deps,
    async getPayload(ref, size) {
      loaded.open();
      await suspended.opened;
      return scene.deps.getPayload(ref, size);
    },
  };
  const attempting = attempt(deps, scene.context, delivery.call(1));
  await loaded.opened;
  await setStatus(scene, "suspended");
  suspended.open();
  await attempting;
  expect(requests).toBe(0);
  expect(await delivery.read()).toMatchObject({ status: "pending", attempt_count: 0, attempts: [] });

  await setStatus(scene, "active");
  await attempt(scene.deps, scene.context, delivery.call(1));
  expect(requests).toBe(1);
  expect(await delivery.read()).toMatchObject({ status: "succeeded" });
});

test("a delivery that comes due meanwhile is held until its event ends, and its age begins anew", async () => {
  const scene = await createScene({ retry_policy: { max_age_seconds: 60 } });
  const delivery = await scene.publishOne();
  await setStatus(scene, "suspended");
  // Long past its age.
  const later = { ...scene.deps, now: () => Date.now() + 60 * MINUTE_MS };
  await attempt(later, scene.context, delivery.call(1));
  const { expires_at: expiresAt } = await rowOf(scene, delivery);
  expect(await rowOf(scene, delivery)).toMatchObject({ status: "pending", hold_until: expiresAt });
  expect((await scene.tenant.api.post(`/v1/deliveries/${delivery.id}/retry`)).body.code).toBe("held");

  await setStatus(scene, "active");
  expect(await rowOf(scene, delivery)).toMatchObject({ lane_key: null, hold_until: null });
  await scene.db
    .prepare("update tenant set resumed_at = ? where id = ?")
    .bind(Date.now() + 60 * MINUTE_MS, scene.tenant.id)
    .run();
  // Real rings may have been quicker: either way it was attempted once and has not expired.
  await attempt(later, scene.context, delivery.call(1));
  await expect.poll(async () => (await delivery.read()).status).toBe("succeeded");
  expect((await delivery.read()).attempt_count).toBe(1);
});

test("a paused endpoint of a tenant that is reactivated stays paused", async () => {
  const scene = await createScene();
  const delivery = await scene.publishOne();
  await scene.tenant.api.post(`/v1/endpoints/${scene.endpointId}/pause`);
  await setStatus(scene, "suspended");
  await attempt(scene.deps, scene.context, delivery.call(1));
  await setStatus(scene, "active");
  expect((await rowOf(scene, delivery))["hold_until"]).not.toBeNull();
  await attempt(scene.deps, scene.context, delivery.call(1));
  expect(requests).toBe(0);
  // And the other way round: a resume does not lift a suspension.
  await setStatus(scene, "suspended");
  await scene.tenant.api.post(`/v1/endpoints/${scene.endpointId}/resume`);
  expect((await rowOf(scene, delivery))["hold_until"]).not.toBeNull();
  await attempt(scene.deps, scene.context, delivery.call(1));
  expect(requests).toBe(0);
  await end(scene);
});

test("a lane stands still while its tenant is suspended, for longer than its heads may age, and goes on in order", async () => {
  const fixture = await createLaneFixture({ retry_policy: { max_age_seconds: 60 }, max_head_hold_seconds: 60 });
  const names = ["k/0", "k/1", "k/2"];
  await fixture.publishAll(names);
  const lane = fixture.createLane();
  const begun = gate();
  fixture.answer = async () => {
    // While the first is out: its close and the claim of the second are one batch.
    if (fixture.sent.length === 1) await setStatus(fixture, "suspended");
    begun.open();
    return new Response("ok");
  };
  await lane.run();
  expect(fixture.sent.map(({ name }) => name)).toEqual(["k/0"]);
  expect((await fixture.tenant.api.get(`/v1/endpoints/${fixture.endpointId}/lane`)).body.state).toBe("paused");
  fixture.forward(60 * MINUTE_MS);
  await lane.run();
  await fixture.createLane("another").run();
  expect(fixture.sent).toHaveLength(1);
  expect(await fixture.openCount()).toBe(2);

  await reactivateOnly(fixture);
  await lane.run();
  expect(fixture.sent.map(({ name }) => name)).toEqual(names);
  expect(await fixture.openCount()).toBe(0);
});

test("the watchdog leaves what a suspension holds alone, and finishes a reactivation that died", async () => {
  const scene = await createScene();
  const delivery = await scene.publishOne();
  await setStatus(scene, "suspended");
  await attempt(scene.deps, scene.context, delivery.call(1));
  const watch = createWatch(scene);
  watch.forward(31_000);
  await watch.tick();
  expect(watch.rung).toEqual([]);
  await reactivateOnly(scene);
  await watch.tick();
  expect(watch.rung).toEqual([delivery.call(1)]);
  expect((await rowOf(scene, delivery))["hold_until"]).toBeNull();
  await attempt(scene.deps, scene.context, delivery.call(1));
});

test("lanes of a suspended tenant are not woken, and are once it is active", async () => {
  const fixture = await createLaneFixture();
  await fixture.publishAll(["k/0"]);
  await setStatus(fixture, "suspended");
  const watch = createWatch(fixture);
  watch.forward(60 * MINUTE_MS);
  await watch.tick();
  expect(watch.woken).toEqual([]);
  await reactivateOnly(fixture);
  watch.forward(MINUTE_MS);
  await watch.tick();
  expect(watch.woken).toEqual([fixture.endpointId]);
  await fixture.createLane().run();
});

test("what was held with its clock running, and is held by the suspension alone by now, is not ended by that clock", async () => {
  const scene = await createScene({ retry_policy: { max_age_seconds: 60 } });
  const { tenant, endpointId } = scene;
  const [kept, aged] = [await scene.publishOne(), await scene.publishOne()];
  await tenant.api.post(`/v1/endpoints/${endpointId}/disable`);
  await attempt(scene.deps, scene.context, kept.call(1));
  const { expires_at: expiresAt, hold_until: holdUntil } = await rowOf(scene, kept);
  expect(holdUntil).toBeLessThan(expiresAt);
  await setStatus(scene, "suspended");
  await tenant.api.post(`/v1/endpoints/${endpointId}/enable`);
  const watch = createWatch(scene);
  watch.forward(2 * MINUTE_MS);
  await watch.tick();
  expect(await rowOf(scene, kept)).toMatchObject({ status: "pending", hold_until: expiresAt });

  // While the endpoint is disabled its clock runs, suspended or not.
  await tenant.api.post(`/v1/endpoints/${endpointId}/disable`);
  await attempt(scene.deps, scene.context, aged.call(1));
  await watch.tick();
  expect(await rowOf(scene, aged)).toMatchObject({ status: "expired" });
  await end(scene);
});

test("a suspended tenant's keys read, and publish nothing: not an event, not a batch, not a duplicate", async () => {
  const scene = await createScene();
  const { tenant } = scene;
  const event = { type: "a.b", source: "orders", payload: 1, idempotency_key: "k" };
  const { body: first } = await tenant.api.post("/v1/events", event);
  const sources = (await tenant.api.get("/v1/sources")).body.data;
  const publishKey = createApi(await tenant.publishKey(sources[0].id));
  expect((await publishKey.post("/v1/events", { type: "a.b", payload: 2 })).status).toBe(202);
  await setStatus(scene, "suspended");
  const asOperator = createApi(operatorToken, { "X-Tenant-Id": tenant.id });
  const refused = { status: 403, body: { code: "tenant_suspended", status: 403 } };
  for (const api of [tenant.api, asOperator]) {
    expect(await api.post("/v1/events", event)).toMatchObject(refused);
    expect(await api.post("/v1/events/batch", { events: [event] })).toMatchObject(refused);
    expect(await api.post("/v1/events/raw?type=a.b&source=orders", 1)).toMatchObject(refused);
  }
  expect(await publishKey.post("/v1/events", { type: "a.b", payload: 2 })).toMatchObject(refused);
  for (const path of ["events", `events/${first.id}`, "deliveries", "endpoints", "api-keys"]) {
    expect((await tenant.api.get(`/v1/${path}`)).status).toBe(200);
  }
  expect((await tenant.api.get("/v1/events")).body.data).toHaveLength(2);

  await setStatus(scene, "active");
  expect((await tenant.api.post("/v1/events", event)).body).toMatchObject({ id: first.id, duplicate: true });
  await end(scene);
});

test("deleting a suspended tenant ends what it held", async () => {
  const scene = await createScene();
  const delivery = await scene.publishOne();
  await setStatus(scene, "suspended");
  await attempt(scene.deps, scene.context, delivery.call(1));
  expect((await operator.delete(`/v1/tenants/${scene.tenant.id}`)).status).toBe(204);
  const watch = createWatch(scene);
  await watch.tick();
  await attempt(scene.deps, scene.context, delivery.call(1));
  expect(await rowOf(scene, delivery)).toMatchObject({ status: "failed", final_outcome: "endpoint_deleted" });
});
