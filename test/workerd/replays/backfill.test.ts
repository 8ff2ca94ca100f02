import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { goOnWithReplays } from "../../../src/app/replay/go-on.ts";
import { composeWatch } from "../../../src/compose.ts";
import { deliveryId } from "../../../src/core/ids.ts";
import { countingEnv, createCost } from "../support/counting.ts";
import { publish, shardDeps } from "../support/worker.ts";
import { createReplayFixture, type ReplayFixture } from "./support.ts";

const names = (count: number, key = "") => Array.from({ length: count }, (_, i) => `${key}/${i}`);
const eventsOf = (ids: string[]) => ids.map((id) => `evt_${id.slice(4, 30)}`);
const WINDOW = { created_after: "2020-01-01T00:00:00.000Z", created_before: "2100-01-01T00:00:00.000Z" };

/** A new endpoint of the scene's tenant, with a subscription. */
async function subscribe({ tenant }: ReplayFixture, subscription: object = {}, endpoint: object = {}) {
  const created = await tenant.api.post("/v1/endpoints", { url: "https://late.example/hook", ...endpoint });
  const made = await tenant.api.post("/v1/subscriptions", {
    endpoint_id: created.body.id,
    event_type_pattern: "*",
    ...subscription,
  });
  expect(made.status).toBe(201);
  return { endpointId: created.body.id as string, id: made.body.id as string };
}

async function filled({ db }: ReplayFixture, endpointId: string) {
  const { results } = await db
    .prepare("select * from delivery where endpoint_id = ? order by lane_position, event_id, replay_no")
    .bind(endpointId)
    .all<Record<string, any>>();
  return results;
}

test("past events are delivered to a new subscription in the order of their acceptance, and those it has got are not", async () => {
  const scene = await createReplayFixture();
  const before = await scene.publishAll(names(120));
  const late = await subscribe(scene, {}, { ordering_mode: "strict" });
  const after = await scene.publishAll(names(3));
  scene.forward(10);
  const dry = await scene.ask({ filter: WINDOW, to_subscription_id: late.id, dry_run: true });
  expect(await scene.read(dry.id)).toMatchObject({
    state: "dry_run",
    to_subscription_id: late.id,
    matched: 120,
    matched_at_least: 120,
    sample: eventsOf(before.slice(0, 10)),
  });
  await scene.start(dry.id);
  await scene.goOn();
  const first = await filled(scene, late.endpointId);
  expect(first.map((row) => row["event_id"])).toEqual(eventsOf([...after, ...before.slice(0, 100)]));
  expect(first[3]).toMatchObject({ replay_no: 1, replay_of: null, subscription_id: late.id, status: "pending" });
  expect(await scene.finish(dry.id)).toMatchObject({ state: "completed", matched: 120, replayed: 120, looked_at: 123 });
  const all = await filled(scene, late.endpointId);
  expect(all).toHaveLength(123);
  // Others' deliveries are as they were.
  expect(await filled(scene, scene.endpointId)).toHaveLength(123);
  // It is listed by its own time, like a replay.
  const [listed] = (await scene.tenant.api.get("/v1/deliveries?limit=1")).body.data;
  expect(listed.endpoint_id).toBe(late.endpointId);
});

test("a publish that is repeated is answered as it was, whatever was filled in since", async () => {
  const scene = await createReplayFixture();
  const event = { type: "order.created", source: "orders", payload: 1, idempotency_key: "once" };
  const first = (await scene.tenant.api.post("/v1/events", event)).body;
  const late = await subscribe(scene);
  scene.forward(10);
  const { id } = await scene.ask({ filter: WINDOW, to_subscription_id: late.id });
  expect(await scene.finish(id)).toMatchObject({ replayed: 1 });
  expect((await scene.tenant.api.post("/v1/events", event)).body).toEqual({ ...first, duplicate: true });
});

test("pattern, scope, version and filter decide as for a publish, and the window and type that are asked for", async () => {
  const scene = await createReplayFixture();
  const { tenant } = scene;
  await tenant.api.post("/v1/event-types", { name: "pay.secret", required_scope: "pay" });
  await tenant.api.post("/v1/event-types", { name: "pay.versions", schema_version: 2 });
  const shard = shardDeps(tenant, scene.context);
  const make = (type: string, payload = '{"n":1}', variants: number[] = []) =>
    publish(shard, tenant, { type, source: "orders" }, payload, variants).then(({ id }) => id);
  const [plain, secret, both, large, broken, other] = [
    await make("pay.plain"),
    await make("pay.secret"),
    await make("pay.versions", '{"n":1}', [2]),
    await make("pay.plain", '{"n":9}'),
    await make("pay.plain", '{"n":"x"}'),
    await make("order.created"),
  ];
  const fill = async (subscription: object, filter: object = {}) => {
    const late = await subscribe(scene, subscription);
    scene.forward(10);
    const { id } = await scene.ask({ filter: { ...WINDOW, ...filter }, to_subscription_id: late.id });
    const { skipped, matched, replayed } = await scene.finish(id);
    const rows = await filled(scene, late.endpointId);
    return {
      ids: rows.map((row) => row["event_id"]),
      versions: rows.map((row) => row["schema_version"]),
      skipped,
      matched,
      replayed,
    };
  };
  expect(await fill({ event_type_pattern: "pay.*" })).toMatchObject({ ids: [plain, both, large, broken] });
  expect(await fill({ event_type_pattern: "pay.*", entitlement_scope: "pay" })).toMatchObject({
    ids: [plain, secret, both, large, broken],
    versions: [1, 1, 2, 1, 1],
  });
  expect(await fill({ event_type_pattern: "pay.versions", schema_version: 1 })).toMatchObject({ versions: [1] });
  expect(await fill({ event_type_pattern: "pay.*", schema_version: 2 })).toMatchObject({
    ids: [both],
    skipped: { version_not_published: 3 },
  });
  expect(await fill({ event_type_pattern: "pay.*", filter: "payload.n > 5" })).toMatchObject({
    ids: [large],
    matched: 2,
    replayed: 1,
    skipped: { filter_failed: 1 },
  });
  expect(await fill({}, { event_type: "order.created" })).toMatchObject({ ids: [other] });
  expect(await fill({}, { created_before: "2021-01-01T00:00:00.000Z" })).toMatchObject({ ids: [], matched: 0 });
});

test("a test send is filled in nowhere, not even where all that the relay tells of itself is asked for", async () => {
  const scene = await createReplayFixture();
  await scene.tenant.api.post(`/v1/endpoints/${scene.endpointId}/test`);
  const late = await subscribe(scene, { event_type_pattern: "hooklane.*" });
  scene.forward(10);
  const { id } = await scene.ask({ filter: WINDOW, to_subscription_id: late.id });
  expect(await scene.finish(id)).toMatchObject({ looked_at: 1, matched: 0, replayed: 0 });
});

test("with include_replayed what the endpoint has got goes out once more, linked to what it repeats", async () => {
  const scene = await createReplayFixture();
  const [ended, open] = [
    await scene.endAll(["/a"], { status: "succeeded", outcome: "delivered" }),
    await scene.publishAll(["/b"]),
  ];
  const [subscription] = (await scene.tenant.api.get("/v1/subscriptions")).body.data;
  scene.forward(10);
  const { id } = await scene.ask({ filter: WINDOW, to_subscription_id: subscription.id, include_replayed: true });
  expect(await scene.finish(id)).toMatchObject({ matched: 2, replayed: 1, skipped: { still_open: 1 } });
  const [again] = await scene.made();
  expect(again).toMatchObject({ event_id: eventsOf(ended)[0], replay_no: 1, replay_of: 0 });
  const { body } = await scene.tenant.api.get(`/v1/deliveries/${ended[0]}`);
  expect(body.replayed_as).toBe(deliveryId({ eventId: body.event_id, endpointId: scene.endpointId, replayNo: 1 }));
  expect(open).toHaveLength(1);
});

test("a step that was worked out under another configuration, or before a cancel, writes nothing; two at once fill in once", async () => {
  const scene = await createReplayFixture();
  await scene.publishAll(names(20));
  const late = await subscribe(scene);
  scene.forward(10);
  const { id } = await scene.ask({ filter: WINDOW, to_subscription_id: late.id });
  const once = async () => {
    const parts = await scene.watch.listDueReplayParts(scene.now() + 1_000, 99);
    let rounds = 0;
    return { ...scene.watch, listDueReplayParts: async () => (rounds++ === 0 ? parts : []) };
  };
  // The subscription is changed between the look and the step.
  await goOnWithReplays({
    ...(await once()),
    async takeBackfillStep(...given) {
      await scene.tenant.api.patch(`/v1/subscriptions/${late.id}`, { event_type_pattern: "order.created" });
      return scene.watch.takeBackfillStep(...given);
    },
  });
  expect(await filled(scene, late.endpointId)).toEqual([]);
  expect(await scene.read(id)).toMatchObject({ state: "running", looked_at: 0, replayed: 0 });
  await Promise.all([goOnWithReplays(await once()), goOnWithReplays(await once())]);
  expect(await filled(scene, late.endpointId)).toHaveLength(20);
  expect(await scene.finish(id)).toMatchObject({ state: "completed", looked_at: 20, replayed: 20 });

  const another = await subscribe(scene);
  const second = await scene.ask({ filter: WINDOW, to_subscription_id: another.id });
  const stale = await once();
  await scene.cancel(second.id);
  await goOnWithReplays(stale);
  expect(await filled(scene, another.endpointId)).toEqual([]);
});

test("a filter has many payloads read a few steps at a time, and a dry run says where it stopped", async () => {
  const scene = await createReplayFixture();
  await scene.publishAll(names(300));
  const late = await subscribe(scene, { filter: 'payload.name == "/7"' });
  scene.forward(10);
  const dry = await scene.ask({ filter: WINDOW, to_subscription_id: late.id, dry_run: true });
  expect(dry).toMatchObject({ expected: null, expectedAtLeast: 1 });
  await scene.start(dry.id);
  expect(await scene.finish(dry.id)).toMatchObject({ state: "completed", matched: 1, replayed: 1, looked_at: 300 });
});

test("one that is filled in costs four rows before its attempt, and few of its job's", async () => {
  const scene = await createReplayFixture();
  await scene.publishAll(names(150));
  const late = await subscribe(scene);
  scene.forward(10);
  await scene.ask({ filter: WINDOW, to_subscription_id: late.id });
  const parts = await scene.watch.listDueReplayParts(scene.now(), 9);
  const cost = createCost();
  const counted = composeWatch(countingEnv(env as Env, cost), scene.context.context, scene.tenant.shard);
  let rounds = 0;
  await goOnWithReplays({
    ...scene.watch,
    takeBackfillStep: counted.takeBackfillStep,
    listDueReplayParts: async () => (rounds++ === 0 ? parts : []),
  });
  expect(await filled(scene, late.endpointId)).toHaveLength(100);
  expect(cost.rowsWritten).toBeLessThanOrEqual(100 * 4 + 10);
});

test.each([
  [{ created_after: WINDOW.created_after }, "filter.created_before"],
  [{ ...WINDOW, status: "failed" }, "filter.status"],
  [{ ...WINDOW, error_class: "gone" }, "filter.error_class"],
  [{ ...WINDOW, source_id: "src_0000000000000000" }, "filter.source_id"],
])("a back-fill of %j is refused", async (filter, path) => {
  const { tenant } = await createReplayFixture();
  const [{ id }] = (await tenant.api.get("/v1/subscriptions")).body.data;
  const { status, body: problem } = await tenant.api.post("/v1/replays", { filter, to_subscription_id: id });
  expect([status, problem.errors[0].path]).toEqual([422, path]);
});
