import { expect, test } from "vitest";
import { goOnWithReplays } from "../../../src/app/replay/go-on.ts";
import { deliveryId } from "../../../src/core/ids.ts";
import { createReplayJobLedger } from "../../../src/storage/ledger/replays/jobs.ts";
import { createTestTenant } from "../support/api.ts";
import { createReplayFixture, type ReplayFixture } from "./support.ts";

const names = (count: number, key = "") => Array.from({ length: count }, (_, i) => `${key}/${i}`);
const events = (rows: Record<string, any>[]) => rows.map((row) => row["event_id"]);
const eventsOf = (ids: string[]) => ids.map((id) => `evt_${id.slice(4, 30)}`);
const ofEndpoint = ({ endpointId }: ReplayFixture) => ({ filter: { endpoint_id: endpointId } });

test("a replay makes a new delivery of each dead letter, links both, and says how far it is", async () => {
  const scene = await createReplayFixture();
  const dead = await scene.endAll(names(3));
  const { id } = await scene.ask(ofEndpoint(scene));
  expect(await scene.read(id)).toMatchObject({
    state: "running",
    filter: { endpoint_id: scene.endpointId, status: null },
    matched: 3,
    matched_at_least: 3,
    looked_at: 0,
    replayed: 0,
    skipped: {},
    finished_at: null,
  });
  await scene.goOn();
  expect(await scene.read(id)).toMatchObject({
    state: "completed",
    matched: 3,
    matched_at_least: 3,
    looked_at: 3,
    replayed: 3,
    skipped: {},
    error: null,
    finished_at: expect.any(String),
  });
  const made = await scene.made();
  expect(events(made)).toEqual(eventsOf(dead));
  for (const row of made) expect(row).toMatchObject({ replay_no: 1, replay_of: 0, status: "pending", lane_key: null });
  for (const [i, first] of dead.entries()) {
    const again = deliveryId({ eventId: made[i]!["event_id"], endpointId: scene.endpointId, replayNo: 1 });
    expect((await scene.tenant.api.get(`/v1/deliveries/${first}`)).body).toMatchObject({ replayed_as: again });
  }
  expect(scene.rung.map(({ deliveryId: rung }) => rung).toSorted()).toEqual(
    made.map((row) => deliveryId({ eventId: row["event_id"], endpointId: scene.endpointId, replayNo: 1 })),
  );
});

test("a dry run counts, shows some, and makes nothing until it is started; then as of then", async () => {
  const scene = await createReplayFixture();
  const dead = await scene.endAll(names(12));
  const { id } = await scene.ask({ ...ofEndpoint(scene), dry_run: true });
  const dry = await scene.read(id);
  expect(dry).toMatchObject({ state: "dry_run", matched: 12, matched_at_least: 12, started_at: null });
  expect(dry.sample).toEqual(dead.slice(0, 10));
  await scene.goOn();
  expect(await scene.made()).toEqual([]);

  const later = await scene.endAll(["/later"]);
  scene.forward(10);
  await scene.start(id);
  // Asked for again, as by somebody who got no answer.
  await scene.start(id);
  expect(await scene.finish(id)).toMatchObject({ state: "completed", replayed: 13, matched: 13 });
  expect(events(await scene.made())).toEqual(eventsOf([...dead, ...later]));
  await expect(scene.start(id)).rejects.toMatchObject({ code: "replay_ended" });
});

test("what has ended since it began is not taken in, nor are its own replays that die", async () => {
  const scene = await createReplayFixture();
  const [first] = await scene.endAll(["/a"]);
  const late = await scene.publishAll(["/late"]);
  const { id } = await scene.ask(ofEndpoint(scene));
  await scene.end(late, { at: scene.now() + 1 });
  await scene.goOn();
  const [again] = await scene.made();
  await scene.end([deliveryId({ eventId: again!["event_id"], endpointId: scene.endpointId, replayNo: 1 })], {
    at: scene.now(),
  });
  expect(await scene.finish(id)).toMatchObject({ state: "completed", replayed: 1 });
  expect(eventsOf([first!])).toEqual(events(await scene.made()));
});

test("its own replays are younger than itself whatever a clock says, so one that dies at once is not taken in", async () => {
  const scene = await createReplayFixture();
  await scene.endAll(names(130));
  const { id } = await scene.ask(ofEndpoint(scene));
  // The watchdog's clock, and that of whoever records, are an hour behind that of the request.
  const now = () => Date.now() - 3_600_000;
  const due = scene.watch.listDueReplayParts(scene.now() + 3_600_000, 99);
  const behind = { ...scene.watch, now, listDueReplayParts: async () => due, sleep: async () => {} };
  let rounds = 0;
  await goOnWithReplays({ ...behind, listDueReplayParts: async () => (rounds++ === 0 ? due : []) });
  const made = await scene.made();
  expect(made).toHaveLength(100);
  await scene.end(
    made.map((row) => deliveryId({ eventId: row["event_id"], endpointId: scene.endpointId, replayNo: 1 })),
    { at: now() },
  );
  await scene.db
    .prepare(
      "update delivery set created_at = (select started_at + 1 from replay where id = ?1) where tenant_id = ?2 and replay_no = 1",
    )
    .bind(id, scene.tenant.id)
    .run();
  expect(await scene.finish(id)).toMatchObject({ state: "completed", replayed: 130 });
});

test("what is replayed already is passed over, or with include_replayed replayed once more; each event once", async () => {
  const scene = await createReplayFixture();
  await scene.endAll(names(3));
  expect(await scene.finish((await scene.ask(ofEndpoint(scene))).id)).toMatchObject({ replayed: 3 });
  expect(await scene.finish((await scene.ask(ofEndpoint(scene))).id)).toMatchObject({
    matched: 0,
    looked_at: 3,
    replayed: 0,
  });
  // Two of the replays die too: then an event has two dead letters.
  const made = await scene.made();
  await scene.end(
    made.slice(0, 2).map((row) => deliveryId({ eventId: row["event_id"], endpointId: scene.endpointId, replayNo: 1 })),
    { at: scene.now() - 1 },
  );
  scene.forward(10);
  const again = await scene.ask({ ...ofEndpoint(scene), include_replayed: true });
  expect(await scene.finish(again.id)).toMatchObject({ matched: 5, replayed: 3, skipped: { same_event: 2 } });
  const third = (await scene.made()).filter((row) => row["replay_no"] === 2);
  expect(third.map((row) => row["replay_of"])).toEqual([1, 1, 0]);
  const { results } = await scene.db
    .prepare("select replay_no, replayed_as from delivery where tenant_id = ? and replayed_as is not null")
    .bind(scene.tenant.id)
    .all();
  expect(results.every((row) => row["replayed_as"] === 2)).toBe(true);
  expect(results).toHaveLength(5);
});

test("never more than a hundred of them are open, and the next come when half have ended", async () => {
  const scene = await createReplayFixture();
  await scene.endAll(names(260));
  const { id } = await scene.ask(ofEndpoint(scene));
  const openOf = async () => (await scene.made()).filter((row) => row["status"] === "pending");
  const endSome = async (count: number) => {
    const open = (await openOf()).slice(0, count);
    await scene.end(
      open.map((row) => deliveryId({ eventId: row["event_id"], endpointId: scene.endpointId, replayNo: 1 })),
      { status: "succeeded", outcome: "delivered", at: scene.now() },
    );
    scene.forward(60_000);
    await scene.goOn();
  };
  await scene.goOn();
  await endSome(0);
  expect(await openOf()).toHaveLength(100);
  await endSome(49);
  expect(await openOf()).toHaveLength(51);
  await endSome(1);
  expect(await openOf()).toHaveLength(100);
  expect(await scene.read(id)).toMatchObject({ state: "running", replayed: 150, matched: 260 });
  await endSome(100);
  await endSome(100);
  expect(await scene.read(id)).toMatchObject({ state: "completed", replayed: 260, looked_at: 260 });
});

test("two that work on it at once, with the same step in hand, replay nothing twice", async () => {
  const scene = await createReplayFixture();
  await scene.endAll(names(40));
  const { id } = await scene.ask(ofEndpoint(scene));
  const parts = await scene.watch.listDueReplayParts(scene.now() + 1_000, 99);
  const once = () => {
    let rounds = 0;
    return { ...scene.watch, listDueReplayParts: async () => (rounds++ === 0 ? parts : []) };
  };
  await Promise.all([goOnWithReplays(once()), goOnWithReplays(once())]);
  await goOnWithReplays(once());
  expect(await scene.made()).toHaveLength(40);
  expect(await scene.finish(id)).toMatchObject({ state: "completed", replayed: 40, looked_at: 40, skipped: {} });
});

test("two replays of the same dead letters at once deliver each of them once", async () => {
  const scene = await createReplayFixture();
  await scene.endAll(names(20));
  const replays = await Promise.all([scene.ask(ofEndpoint(scene)), scene.ask(ofEndpoint(scene))]);
  const ended = await Promise.all(replays.map(({ id }) => scene.finish(id)));
  expect(ended.reduce((sum, { replayed }) => sum + replayed, 0)).toBe(20);
  expect(await scene.made()).toHaveLength(20);
});

test("once a cancel has answered nothing more is replayed, not even by a step that was worked out before", async () => {
  const scene = await createReplayFixture();
  await scene.endAll(names(5));
  const { id } = await scene.ask(ofEndpoint(scene));
  const parts = await scene.watch.listDueReplayParts(scene.now() + 1_000, 99);
  expect(await scene.cancel(id)).toMatchObject({ state: "cancelled" });
  expect(await scene.cancel(id)).toMatchObject({ state: "cancelled" });
  let rounds = 0;
  await goOnWithReplays({ ...scene.watch, listDueReplayParts: async () => (rounds++ === 0 ? parts : []) });
  await scene.goOn();
  expect(await scene.made()).toEqual([]);
  expect(await scene.read(id)).toMatchObject({ state: "cancelled", replayed: 0, finished_at: expect.any(String) });
  await expect(scene.start(id)).rejects.toMatchObject({ code: "replay_ended" });
});

test("a replay that is over cannot be cancelled", async () => {
  const scene = await createReplayFixture();
  const { id } = await scene.ask(ofEndpoint(scene));
  expect(await scene.finish(id)).toMatchObject({ state: "completed", matched: 0, replayed: 0 });
  await expect(scene.cancel(id)).rejects.toMatchObject({ code: "replay_ended" });
});

test("a step that fails is put off and tried again, and one that always fails ends the replay as failed", async () => {
  const scene = await createReplayFixture();
  await scene.endAll(names(2));
  const { id } = await scene.ask(ofEndpoint(scene));
  const failing = {
    ...scene.watch,
    logFault: () => {},
    walkReplayable: async () => Promise.reject(new Error("D1_ERROR: no")),
  };
  await scene.goOn(failing);
  scene.forward(1_000);
  await scene.goOn();
  // Two seconds from the fault on.
  expect(await scene.made()).toEqual([]);
  scene.forward(2_000);
  await scene.goOn();
  expect(await scene.read(id)).toMatchObject({ state: "completed", replayed: 2 });

  await scene.endAll(["/b"]);
  const second = await scene.ask(ofEndpoint(scene));
  for (let n = 0; (await scene.read(second.id)).state === "running"; n++) {
    expect(n).toBeLessThan(110);
    scene.forward(60_000);
    await scene.goOn(failing);
  }
  expect(await scene.read(second.id)).toMatchObject({ state: "failed", error: expect.stringContaining("again") });
});

test("slow steps do not keep a watchdog from its other work: it comes back for the rest", async () => {
  const scene = await createReplayFixture();
  await scene.endAll(names(1_000));
  const { id } = await scene.ask(ofEndpoint(scene));
  // A part that is due all the time, and whose steps take four seconds each.
  let steps = 0;
  const slow: typeof scene.watch = {
    ...scene.watch,
    listDueReplayParts: async (now) => {
      const [part] = await scene.watch.listDueReplayParts(now + 60_000, 9);
      return Array.from({ length: 20 }, () => part!);
    },
    async walkReplayable(part) {
      steps++;
      scene.forward(4_000);
      return scene.watch.walkReplayable(part);
    },
  };
  expect(await scene.goOn(slow)).toBe(true);
  expect(steps).toBe(3);
  expect(await scene.finish(id)).toMatchObject({ state: "completed", replayed: 1_000 });
});

test("each part of a filter has to hold", async () => {
  const scene = await createReplayFixture();
  const { tenant } = scene;
  const other = (await tenant.api.post("/v1/sources", { name: "other" })).body;
  const [a, b, c] = [await scene.endAll(["/a"]), await scene.endAll(["/b"]), await scene.endAll(["/c"])];
  await scene.end(b, { errorClass: "http_5xx", status: "failed", outcome: "endpoint_disabled" });
  await scene.end(c, { status: "expired", outcome: "expired", errorClass: null });
  const sources = (await tenant.api.get("/v1/sources")).body.data;
  const orders = sources.find(({ name }: any) => name === "orders").id;
  const [subscription] = (await tenant.api.get("/v1/subscriptions")).body.data;
  const created = (await tenant.api.get(`/v1/deliveries/${b[0]}`)).body.created_at;
  const sampleOf = async (filter: object) => (await scene.ask({ filter, dry_run: true })).sample;
  const all = { created_after: "2020-01-01T00:00:00.000Z" };
  expect(await sampleOf(all)).toEqual([...a, ...b]);
  expect(await sampleOf({ status: "dead_letter" })).toEqual(a);
  expect(await sampleOf({ status: "failed" })).toEqual(b);
  expect(await sampleOf({ status: "expired" })).toEqual(c);
  expect(await sampleOf({ error_class: "http_5xx" })).toEqual(b);
  expect(await sampleOf({ event_type: "order.created" })).toEqual([...a, ...b]);
  expect(await sampleOf({ event_type: "order.paid" })).toEqual([]);
  expect(await sampleOf({ source_id: orders })).toEqual([...a, ...b]);
  expect(await sampleOf({ source_id: other.id })).toEqual([]);
  const byName = await tenant.api.post("/v1/replays", { filter: { source_id: "other" }, dry_run: true });
  expect(byName).toMatchObject({ status: 422, body: { errors: [{ path: "filter.source_id" }] } });
  expect(byName.body.errors[0].message).toContain("src_");
  expect(await sampleOf({ subscription_id: subscription.id })).toEqual([...a, ...b]);
  expect(await sampleOf({ created_before: created })).toEqual(a);
  expect(await sampleOf({ created_after: created })).toEqual([]);
  expect(await sampleOf({ created_after: new Date(Date.parse(created) - 1).toISOString() })).toEqual(b);
  expect(await sampleOf({ endpoint_id: scene.endpointId, error_class: "http_4xx" })).toEqual(a);
  // The walk means what the count did.
  const { id } = await scene.ask({ filter: { created_before: created, status: "dead_letter" } });
  expect(await scene.finish(id)).toMatchObject({ replayed: 1, looked_at: 1 });
  expect(events(await scene.made())).toEqual(eventsOf(a));
});

test("endpoints are walked side by side, and each in the order of its events", async () => {
  const scene = await createReplayFixture();
  const { tenant } = scene;
  const second = (await tenant.api.post("/v1/endpoints", { url: "https://second.example/hook" })).body;
  await tenant.api.post("/v1/subscriptions", { endpoint_id: second.id, event_type_pattern: "*" });
  const dead = await scene.endAll(names(120));
  await scene.end(dead.map((id) => id.slice(0, 30) + second.id.slice(3)));
  const { id } = await scene.ask({ filter: { status: "dead_letter" } });
  await scene.goOn();
  const made = await scene.made();
  for (const endpointId of [scene.endpointId, second.id]) {
    const own = made.filter((row) => row["endpoint_id"] === endpointId);
    expect(events(own)).toEqual(eventsOf(dead).slice(0, 100));
  }
  expect(await scene.finish(id)).toMatchObject({ state: "completed", replayed: 240 });
});

test("the policy given goes over the endpoint's, else the present one holds", async () => {
  const scene = await createReplayFixture({ retry_policy: { max_attempts: 7 } });
  await scene.endAll(names(1));
  await scene.finish((await scene.ask({ ...ofEndpoint(scene), retry_policy: { max_attempts: 2 } })).id);
  await scene.finish((await scene.ask({ ...ofEndpoint(scene), include_replayed: true })).id);
  const read = async (replayNo: number) => {
    const [first] = await scene.made();
    const id = deliveryId({ eventId: first!["event_id"], endpointId: scene.endpointId, replayNo });
    return (await scene.tenant.api.get(`/v1/deliveries/${id}`)).body.retry_policy;
  };
  expect(await read(1)).toMatchObject({ max_attempts: 2, max_age_seconds: 259_200 });
  expect(await read(2)).toMatchObject({ max_attempts: 7 });
});

test("a dry run that has nothing to do is completed by its start", async () => {
  const { api } = await createTestTenant();
  const { body } = await api.post("/v1/replays", { filter: { status: "dead_letter" }, dry_run: true });
  expect(body).toMatchObject({ state: "dry_run", matched: 0 });
  const started = await api.post(`/v1/replays/${body.id}/start`);
  expect(started).toMatchObject({ status: 200, body: { state: "completed", matched: 0, replayed: 0 } });
  expect((await api.post(`/v1/replays/${body.id}/start`)).status).toBe(409);
});

test("one for more endpoints than it may walk says so, and replays none of it", async () => {
  const scene = await createReplayFixture();
  const { tenant, db } = scene;
  await scene.endAll(names(1));
  for (const n of [1, 2]) {
    const { id } = (await tenant.api.post("/v1/endpoints", { url: `https://more.example/${n}` })).body;
    await tenant.api.post("/v1/subscriptions", { endpoint_id: id, event_type_pattern: "*" });
    await scene.end([(await scene.publishAll(names(1)))[0]!.slice(0, 30) + id.slice(3)]);
  }
  const { filter } = await scene.ask({ filter: { status: "dead_letter" }, dry_run: true });
  const start = async (maxEndpoints: number) => {
    const { id } = await scene.ask({ filter: { status: "dead_letter" }, dry_run: true });
    return createReplayJobLedger(db, maxEndpoints).startReplay(tenant.id, id, filter.endpointId, scene.now());
  };
  const refused = await start(2);
  expect(refused).toMatchObject({ state: "failed", error: expect.stringContaining("endpoints"), replayed: 0 });
  await scene.goOn();
  expect(await scene.made()).toEqual([]);
  const taken = await start(3);
  expect(taken).toMatchObject({ state: "running" });
  expect(await scene.finish(taken!.id)).toMatchObject({ state: "completed", replayed: 3 });
});

test("a tenant has five of them running at most, and another tenant's are none of its business", async () => {
  const scene = await createReplayFixture();
  await scene.endAll(names(1));
  const running = [];
  for (let n = 0; n < 5; n++) running.push(await scene.ask(ofEndpoint(scene)));
  const dry = await scene.ask({ ...ofEndpoint(scene), dry_run: true });
  await expect(scene.ask(ofEndpoint(scene))).rejects.toMatchObject({ code: "quota_exceeded" });
  await expect(scene.start(dry.id)).rejects.toMatchObject({ code: "quota_exceeded" });
  await scene.cancel(running[0]!.id);
  expect(await scene.start(dry.id)).toMatchObject({ state: "running" });

  const { api } = await createTestTenant();
  expect((await api.get(`/v1/replays/${dry.id}`)).status).toBe(404);
  expect((await api.post(`/v1/replays/${dry.id}/cancel`)).status).toBe(404);
  expect((await api.post(`/v1/replays/${dry.id}/start`)).status).toBe(404);
  expect((await api.get("/v1/replays")).body.data).toEqual([]);
  expect((await api.post("/v1/replays", { filter: { endpoint_id: scene.endpointId } })).status).toBe(422);
  const listed = (await scene.tenant.api.get("/v1/replays?limit=4")).body;
  expect(listed.data).toHaveLength(4);
  const rest = (await scene.tenant.api.get(`/v1/replays?limit=4&cursor=${listed.next_cursor}`)).body;
  expect(rest.next_cursor).toBeNull();
  expect(new Set([...listed.data, ...rest.data].map(({ id }) => id)).size).toBe(6);
});

test.each([
  [{}, "filter"],
  [{ filter: {} }, "filter"],
  [{ filter: { status: "succeeded" } }, "filter.status"],
  [{ filter: { status: "pending" } }, "filter.status"],
  [{ filter: { color: "red" } }, "filter.color"],
  [{ filter: { endpoint_id: "ep_0000000000000000" } }, "filter.endpoint_id"],
  [{ filter: { subscription_id: "sub_0000000000000000" } }, "filter.subscription_id"],
  [{ filter: { status: "failed" }, retry_policy: { max_attempts: 0 } }, "retry_policy.max_attempts"],
])("%j is refused", async (body, path) => {
  const { api } = await createTestTenant();
  const { status, body: problem } = await api.post("/v1/replays", body);
  expect(status).toBe(422);
  expect(problem.errors[0].path).toBe(path);
});

test("a replay that is asked for over the API goes on by itself", async () => {
  const scene = await createReplayFixture();
  await scene.endAll(names(3));
  const { status, body } = await scene.tenant.api.post("/v1/replays", ofEndpoint(scene));
  expect(status).toBe(201);
  await expect.poll(() => scene.read(body.id)).toMatchObject({ state: "completed", replayed: 3 });
});
