import { expect, test } from "vitest";
import { createReplayFixture } from "./support.ts";

const names = (count: number, key = "") => Array.from({ length: count }, (_, i) => `${key}/${i}`);
const eventsOf = (ids: string[]) => ids.map((id) => `evt_${id.slice(4, 30)}`);

test("at a strict endpoint replays stand at the tail of its lane, in the order of their events", async () => {
  const scene = await createReplayFixture({ ordering_mode: "strict" });
  const dead: string[] = [];
  for (let n = 0; n < 3; n++) dead.push(...(await scene.endAll(names(40))));
  const waiting = await scene.publishAll(["/waiting"]);
  const { id } = await scene.ask({ filter: { endpoint_id: scene.endpointId } });
  await scene.goOn();
  const { results } = await scene.db
    .prepare("select * from delivery where tenant_id = ? and terminal_at is null order by lane_key, lane_position")
    .bind(scene.tenant.id)
    .all();
  expect(results.map((row) => row["event_id"])).toEqual(eventsOf([...waiting, ...dead.slice(0, 100)]));
  expect(new Set(results.map((row) => row["lane_key"]))).toEqual(new Set([""]));
  expect(results.every((row) => row["replay_no"] === 0 || row["scheduled_at"] === null)).toBe(true);
  expect(await scene.finish(id)).toMatchObject({ state: "completed", replayed: 120 });
  const order = [...(await scene.made())].toSorted(
    (a, b) => a["created_at"] - b["created_at"] || a["lane_position"] - b["lane_position"],
  );
  expect(order.map((row) => row["event_id"])).toEqual(eventsOf(dead));
});

test("at a keyed endpoint each key has the order of its events", async () => {
  const scene = await createReplayFixture({ ordering_mode: "keyed" });
  const dead = await scene.endAll(["a/1", "b/1", "a/2", "/x", "b/2", "a/3"]);
  await scene.ask({ filter: { endpoint_id: scene.endpointId } });
  await scene.goOn();
  const byKey = Map.groupBy(await scene.made(), (row) => row["lane_key"]);
  const at = (...places: number[]) => eventsOf(places.map((n) => dead[n]!));
  expect(byKey.get("a")!.map((row) => row["event_id"])).toEqual(at(0, 2, 5));
  expect(byKey.get("b")!.map((row) => row["event_id"])).toEqual(at(1, 4));
});

test("where nothing orders a lane its first attempts go before replays, and its lane sends them", async () => {
  const scene = await createReplayFixture({ concurrency_cap: 1 });
  await scene.endAll(["/old.1", "/old.2"]);
  await scene.ask({ filter: { endpoint_id: scene.endpointId } });
  await scene.goOn();
  await scene.publishAll(["/new.1", "/new.2"]);
  await scene.createLane().run();
  expect(scene.sent.map(({ name }) => name)).toEqual(["/new.1", "/new.2", "/old.1", "/old.2"]);
  expect((await scene.made()).map((row) => row["status"])).toEqual(["succeeded", "succeeded"]);
});

test("the replay of a blocked head takes its place and lets the lane go on; others join at the tail", async () => {
  const scene = await createReplayFixture({
    ordering_mode: "strict",
    on_exhausted: "block",
    retry_policy: { max_attempts: 1 },
  });
  const [skipped] = await scene.endAll(["/skipped"]);
  await scene.publishAll(["/head", "/next"]);
  scene.answer = () => new Response("no", { status: 500 });
  await scene.createLane().run();
  expect((await scene.tenant.api.get(`/v1/endpoints/${scene.endpointId}/lane`)).body).toMatchObject({
    state: "blocked",
  });
  await scene.ask({ filter: { endpoint_id: scene.endpointId } });
  scene.forward(1_000);
  await scene.goOn();
  scene.sent.length = 0;
  scene.answer = () => new Response("ok");
  await scene.createLane("b").run();
  expect(scene.sent.map(({ name }) => name)).toEqual(["/head", "/next", "/skipped"]);
  expect((await scene.tenant.api.get(`/v1/deliveries/${skipped}`)).body.replayed_as).not.toBeNull();
});

test("the replays of two heads that block one lane take two places, in the order of their events", async () => {
  const scene = await createReplayFixture({ ordering_mode: "strict", on_exhausted: "block" });
  const heads = await scene.endAll(["/a", "/b"]);
  const [next] = await scene.publishAll(["/next"]);
  // As two leave behind that were under way, each of its own key, when the endpoint became strict.
  await scene.db
    .prepare(
      `insert into lane_block (tenant_id, endpoint_id, lane_key, event_id, replay_no, blocked_at)
       select tenant_id, endpoint_id, '', event_id, 0, terminal_at from delivery
       where tenant_id = ? and terminal_at is not null`,
    )
    .bind(scene.tenant.id)
    .run();
  const { id } = await scene.ask({ filter: { endpoint_id: scene.endpointId } });
  await scene.goOn();
  expect(await scene.read(id)).toMatchObject({ state: "completed", replayed: 2 });
  const { results } = await scene.db
    .prepare(
      "select event_id, lane_position from delivery where tenant_id = ? and terminal_at is null order by lane_position",
    )
    .bind(scene.tenant.id)
    .all<Record<string, any>>();
  expect(results.map((row) => row["event_id"])).toEqual(eventsOf([...heads, next!]));
  expect(new Set(results.map((row) => row["lane_position"])).size).toBe(3);
  await scene.createLane().run();
  expect(scene.sent.map(({ name }) => name)).toEqual(["/a", "/b", "/next"]);
});

test("replays to a paused endpoint wait, no more than a hundred of them", async () => {
  const scene = await createReplayFixture({ ordering_mode: "strict" });
  await scene.endAll(names(120));
  await scene.tenant.api.post(`/v1/endpoints/${scene.endpointId}/pause`);
  const { id } = await scene.ask({ filter: { endpoint_id: scene.endpointId } });
  for (let n = 0; n < 3; n++) {
    scene.forward(60_000);
    await scene.goOn();
  }
  expect(await scene.read(id)).toMatchObject({ state: "running", replayed: 100 });
  await scene.tenant.api.post(`/v1/endpoints/${scene.endpointId}/resume`);
  expect(await scene.finish(id)).toMatchObject({ state: "completed", replayed: 120 });
});

test("what cannot be replayed is passed over and counted by why", async () => {
  const scene = await createReplayFixture();
  const { tenant, db } = scene;
  const ids = await scene.endAll(names(7));
  const events = eventsOf(ids);
  await tenant.api.delete(`/v1/events/${events[0]}/payload`);
  await db.batch([
    db.prepare("update event set expires_at = 1 where id = ?").bind(events[1]),
    db.prepare("update delivery set expires_at = 1 where event_id = ?").bind(events[1]),
    // The most that there may be of one event.
    db.prepare("update delivery set replay_no = 32767 where event_id = ?").bind(events[3]),
    db.prepare("update event set schema_version = 2 where id = ?").bind(events[4]),
    db.prepare("update event set schema_version = 3 where id = ?").bind(events[5]),
  ]);
  // One of the replays of a dead letter that is itself counted open.
  await tenant.api.post(`/v1/deliveries/${ids[2]}/replay`);
  await db.prepare("update delivery set replayed_as = null where event_id = ?").bind(events[2]).run();
  await tenant.api.post("/v1/event-types", { name: "order.created", schema_version: 3 });
  await tenant.api.patch("/v1/event-types/order.created", { schema_version: 3, retired: true });
  const subscriptions = (await tenant.api.get("/v1/subscriptions")).body.data;
  await db.prepare("update subscription set schema_version = 1 where id = ?").bind(subscriptions[0].id).run();
  await db.prepare("update event set schema_version = 1 where id = ?").bind(events[6]).run();
  scene.forward(10);
  const { id } = await scene.ask({ filter: { endpoint_id: scene.endpointId } });
  expect(await scene.finish(id)).toMatchObject({
    state: "completed",
    matched: 7,
    replayed: 1,
    skipped: { payload_erased: 1, expired: 1, still_open: 1, replayed_too_often: 1, version_not_published: 2 },
  });

  // A retired version is told from one that is not carried.
  await db.prepare("update subscription set schema_version = 3 where id = ?").bind(subscriptions[0].id).run();
  const retired = await scene.ask({ filter: { endpoint_id: scene.endpointId } });
  expect((await scene.finish(retired.id)).skipped).toMatchObject({ version_retired: 3 });
});

test.each([
  ["subscription_disabled", "POST", "subscriptions", "/disable"],
  ["subscription_deleted", "DELETE", "subscriptions", ""],
  ["endpoint_disabled", "POST", "endpoints", "/disable"],
  ["endpoint_deleted", "DELETE", "endpoints", ""],
])("%s: nothing is replayed, and all is counted", async (reason, method, noun, act) => {
  const scene = await createReplayFixture();
  await scene.endAll(names(3));
  const { id } = await scene.ask({ filter: { endpoint_id: scene.endpointId } });
  const [one] = (await scene.tenant.api.get(`/v1/${noun}`)).body.data;
  const { status } = await scene.tenant.api.request(`/v1/${noun}/${one.id}${act}`, { method });
  expect(status).toBeLessThan(300);
  expect(await scene.finish(id)).toMatchObject({
    state: "completed",
    matched: 3,
    replayed: 0,
    skipped: { [reason]: 3 },
  });
  expect(await scene.made()).toEqual([]);
});

test("a test send that failed is nobody's dead letter", async () => {
  const scene = await createReplayFixture();
  const [real] = await scene.endAll(["/real"]);
  await scene.tenant.api.post(`/v1/endpoints/${scene.endpointId}/test`);
  await scene.db
    .prepare(
      `update delivery set status = 'dead_letter', final_outcome = 'rejected', created_at = 1, terminal_at = 2, next_attempt_at = null
       where tenant_id = ? and event_id in (select id from event where tenant_id = ? and type = 'hooklane.test')`,
    )
    .bind(scene.tenant.id, scene.tenant.id)
    .run();
  const { id } = await scene.ask({ filter: { endpoint_id: scene.endpointId } });
  expect(await scene.finish(id)).toMatchObject({ looked_at: 2, matched: 1, replayed: 1 });
  expect((await scene.made()).map((row) => row["event_id"])).toEqual(eventsOf([real!]));
});

test("the watchdog wakes for the next step of a replay", async () => {
  const scene = await createReplayFixture();
  await scene.endAll(names(1));
  const { id } = await scene.ask({ filter: { endpoint_id: scene.endpointId } });
  const at = await scene.db
    .prepare("select next_step_at from replay_part where replay_id = ?")
    .bind(id)
    .first<number>("next_step_at");
  const { nextDueAt } = await (scene.watch as any).findNextDue(scene.now());
  expect(nextDueAt).toBeLessThanOrEqual(at!);
});
