import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { createWatchState, tick, type WatchDeps } from "../../../src/app/watch/tick.ts";
import { firstEventIdAt } from "../../../src/core/ids.ts";
import { splitPayloadRef } from "../../../src/core/payload-ref.ts";
import { createActLedger } from "../../../src/storage/ledger/act.ts";
import { createLaneFixture } from "../lane/support.ts";
import { createScene, type Scene } from "../support/scene.ts";
import { createWatchdog } from "../support/watch.ts";
import { attempt } from "../support/worker.ts";

const DAY_MS = 86_400_000;
const PAGE = 500;
const ROWS_AT_ONCE = 5_000;

/** The watchdog a month on, over the real ledger and bucket, deleting this tenant's rows and none of another test's. */
function createDeletion(scene: Scene) {
  const { real, idle, mine } = createWatchdog(scene);
  const faults: string[] = [];
  const deps: WatchDeps = {
    ...idle,
    now: () => Date.now() + 31 * DAY_MS,
    async walkOldEvents(...args) {
      const { events, next } = await real.walkOldEvents(...args);
      return { events: mine(events), next };
    },
    queueAgeMs: async () => 0,
    logFault: (what, error) => void faults.push(`${what}: ${String(error)}`),
  };
  const state = { ...createWatchState(Date.now()), eventsAfter: [scene.tenant.id, ""] as [string, string] };
  const count = async (table: string) =>
    (await scene.db
      .prepare(`select count(*) as n from ${table} where tenant_id = ?`)
      .bind(scene.tenant.id)
      .first("n"))!;
  return {
    faults,
    state,
    tick: () => tick(deps, state),
    counts: async () => ({
      events: (await count("event")) as number,
      deliveries: (await count("delivery")) as number,
      attempts: (await count("attempt")) as number,
    }),
  };
}

const expire = (scene: Scene) =>
  scene.db.batch(
    ["event", "delivery"].map((table) =>
      scene.db.prepare(`update ${table} set expires_at = 1 where tenant_id = ?`).bind(scene.tenant.id),
    ),
  );

test("what has expired is answered as what never was, by every route, though its rows are still there", async () => {
  const scene = await createScene();
  const { api } = scene.tenant;
  const delivery = await scene.publishOne();
  await attempt(scene.deps, scene.context, delivery.call(1));
  const waiting = await scene.publishOne();
  await expire(scene);
  for (const { id, ref } of [delivery, waiting]) {
    for (const [method, path] of [
      ["GET", `/v1/events/${ref.eventId}`],
      ["GET", `/v1/events/${ref.eventId}/payload`],
      ["DELETE", `/v1/events/${ref.eventId}/payload`],
      ["GET", `/v1/deliveries/${id}`],
      ["GET", `/v1/deliveries/${id}/attempts`],
      ["POST", `/v1/deliveries/${id}/retry`],
      ["POST", `/v1/deliveries/${id}/replay`],
      ["POST", `/v1/deliveries/${id}/cancel`],
    ] as const) {
      expect((await api.request(path, { method })).status, `${method} ${path}`).toBe(404);
    }
    for (const query of [
      "/v1/events",
      "/v1/events?type=order.created",
      "/v1/deliveries",
      `/v1/deliveries?endpoint_id=${scene.endpointId}`,
      `/v1/deliveries?event_id=${ref.eventId}`,
      "/v1/deliveries?event_type=order.created",
      "/v1/deliveries?status=succeeded",
      "/v1/deliveries?status=pending",
    ]) {
      expect((await api.get(query)).body, query).toEqual({ data: [], next_cursor: null, prev_cursor: null });
    }
    // Between the look and the write it may expire as well.
    const act = createActLedger(scene.db);
    expect(await act.insertReplay(scene.tenant.id, ref, null, Date.now())).toBeNull();
  }
  const { results } = await scene.db
    .prepare("select event_id from delivery where tenant_id = ?")
    .bind(scene.tenant.id)
    .all();
  expect(results).toHaveLength(2);
});

test("an expired dead letter is in none of the views, and holds up no lane: nobody can see it to skip it", async () => {
  const fixture = await createLaneFixture({ on_exhausted: "block" });
  const { db, tenant, endpointId } = fixture;
  const bad = new Set(["k/0"]);
  fixture.answer = ({ name }) => new Response(null, { status: bad.has(name) ? 400 : 200 });
  const [dead] = await fixture.publishAll(["k/0", "k/1", "k/2", "k/3"]);
  const lane = fixture.createLane();
  await lane.run();
  const views = ["dead_letter", "delivery_view", "attempt_view"].map((view) =>
    db.prepare(`select count(*) as n from ${view} where tenant_id = ? and delivery_id = ?`).bind(tenant.id, dead),
  );
  const seen = async () => (await db.batch<{ n: number }>(views)).map(({ results }) => results[0]!.n);
  expect(await seen()).toEqual([1, 1, 1]);

  const eventId = `evt_${dead!.slice(4, 30)}`;
  await db.prepare("update event set expires_at = 1 where id = ?").bind(eventId).run();
  await db.prepare("update delivery set expires_at = 1 where event_id = ?").bind(eventId).run();
  expect(await seen()).toEqual([0, 0, 0]);
  const skip = await tenant.api.post(`/v1/endpoints/${endpointId}/lane/skip`, { delivery_id: dead });
  expect(skip).toMatchObject({ status: 409, body: { code: "not_blocked" } });

  // The next dead head blocks as if there had been none.
  bad.add("k/2");
  await lane.run();
  expect(fixture.sent.map(({ name }) => name)).toEqual(["k/0", "k/1", "k/2"]);
  const { state, heads } = (await tenant.api.get(`/v1/endpoints/${endpointId}/lane`)).body;
  expect(state).toBe("blocked");
  expect(heads).toMatchObject([{ status: "dead_letter" }]);
  expect(heads[0].event_id).not.toBe(eventId);
  await db
    .prepare("update delivery set status = 'cancelled', terminal_at = 1 where tenant_id = ? and terminal_at is null")
    .bind(tenant.id)
    .run();
});

test("ten thousand expired events are gone at once, and their rows and objects leave a bounded part a tick", async () => {
  const scene = await createScene();
  const { db, tenant, endpointId } = scene;
  const bucket = (env as Env).PAYLOADS;
  const COUNT = 10_000;
  const [source, subscription, policy] = await Promise.all(
    [
      "select id from source where tenant_id = ?",
      "select id from subscription where tenant_id = ?",
      "select id from retry_policy where tenant_id = ?",
    ].map((sql) => db.prepare(sql).bind(tenant.id).first<string>("id")),
  );
  // Ten events an object, each object's accepted in a millisecond of its own. One of them is left behind every so often.
  const now = Date.now();
  const prefix = `30d/${tenant.id}/`;
  const rows = Array.from({ length: COUNT }, (_, i) => {
    const group = Math.floor(i / 10);
    const id = firstEventIdAt(now - group).slice(0, 14) + String(i).padStart(16, "0");
    return [id, `${prefix}${group}#${i % 10}`];
  });
  for (let i = 0; i < COUNT; i += 2_500) {
    const part = JSON.stringify(rows.slice(i, i + 2_500));
    await db.batch(
      [
        `insert into event (tenant_id, id, source_id, type, payload_ref, payload_sha256, payload_size, payload_is_json,
           content_type, occurred_at, relayed_at, expires_at)
         select ?2, value ->> 0, ?3, 'old.event', value ->> 1, x'00', 1, 1, 'application/json', 0, 0, 1
         from json_each(?1) where ?4 <> '' and ?5 <> '' and ?6 <> ''`,
        `insert into delivery (tenant_id, event_id, endpoint_id, subscription_id, status, retry_policy_id, created_at,
           terminal_at, final_outcome, expires_at)
         select ?2, value ->> 0, ?4, ?5, 'dead_letter', ?6, 0, 1, 'exhausted', 1 from json_each(?1) where ?3 <> ''`,
        `insert into attempt (tenant_id, event_id, endpoint_id, replay_no, attempt_number, requested_at,
           endpoint_revision, signing_secret_ids)
         select ?2, j.value ->> 0, ?4, 0, n.value, 0, 1, '[]' from json_each(?1) j cross join json_each('[1,2,3]') n
         where ?3 <> '' and ?5 <> '' and ?6 <> ''`,
      ].map((sql) => db.prepare(sql).bind(part, tenant.id, source, endpointId, subscription, policy)),
    );
  }
  for (let group = 0; group < COUNT / 10; group += 100) {
    await Promise.all(Array.from({ length: 100 }, (_, i) => bucket.put(`${prefix}${group + i}`, "0123456789")));
  }
  const objects = async () => {
    let n = 0;
    for (let cursor: string | undefined; ;) {
      const page = await bucket.list({ prefix, ...(cursor !== undefined && { cursor }) });
      n += page.objects.length;
      if (!page.truncated) return n;
      cursor = page.cursor;
    }
  };
  // At once, for every list and view, before anything was deleted.
  expect((await tenant.api.get("/v1/events")).body.data).toEqual([]);
  expect((await tenant.api.get("/v1/deliveries?status=dead_letter")).body.data).toEqual([]);
  const dead = db.prepare("select count(*) as n from dead_letter where tenant_id = ?").bind(tenant.id);
  expect(await dead.first("n")).toBe(0);

  const deletion = createDeletion(scene);
  let before = await deletion.counts();
  expect([before, await objects()]).toEqual([{ events: COUNT, deliveries: COUNT, attempts: 3 * COUNT }, COUNT / 10]);
  let ticks = 0;
  for (; before.events > 0 && ticks < 100; ticks++) {
    await deletion.tick();
    const after = await deletion.counts();
    expect(before.events - after.events).toBeLessThanOrEqual(PAGE);
    expect(before.deliveries - after.deliveries).toBeLessThanOrEqual(ROWS_AT_ONCE);
    expect(before.attempts - after.attempts).toBeLessThanOrEqual(ROWS_AT_ONCE);
    before = after;
  }
  expect(deletion.faults).toEqual([]);
  expect(ticks).toBe(COUNT / PAGE);
  expect([before, await objects()]).toEqual([{ events: 0, deliveries: 0, attempts: 0 }, 0]);
});

test("an event with more attempts than go at once leaves over several ticks", async () => {
  const scene = await createScene();
  const delivery = await scene.publishOne();
  await scene.publishOne();
  await scene.db
    .prepare(
      `insert into attempt (tenant_id, event_id, endpoint_id, replay_no, attempt_number, requested_at,
         endpoint_revision, signing_secret_ids)
       with recursive n(i) as (select 1 union all select i + 1 from n where i < 12000)
       select ?1, ?2, ?3, 0, n.i, 0, 1, '[]' from n`,
    )
    .bind(scene.tenant.id, delivery.ref.eventId, scene.endpointId)
    .run();
  await expire(scene);
  await scene.db
    .prepare("update delivery set status = 'succeeded', terminal_at = 1 where tenant_id = ?")
    .bind(scene.tenant.id)
    .run();
  const deletion = createDeletion(scene);
  const left: number[] = [];
  for (let n = 0; n < 3; n++) {
    const tickAgainAt = await deletion.tick();
    if (n < 2) expect(tickAgainAt! - Date.now()).toBeLessThan(31 * DAY_MS + 1_000);
    left.push((await deletion.counts()).attempts);
  }
  expect(deletion.faults).toEqual([]);
  expect(left).toEqual([7_000, 2_000, 0]);
  expect(await deletion.counts()).toEqual({ events: 0, deliveries: 0, attempts: 0 });
});

test("an object that events share goes when the last of them has gone, and not while one has a delivery that is open", async () => {
  const scene = await createScene();
  const events = [1, 2, 3].map((payload) => ({ type: "order.created", source: "orders", payload }));
  const { body } = await scene.tenant.api.post("/v1/events/batch", { events });
  const ids: string[] = body.results.map(({ id }: { id: string }) => id);
  const { payload_ref: ref } = (await scene.tenant.api.get(`/v1/events/${ids[0]}`)).body;
  const head = () => (env as Env).PAYLOADS.head(splitPayloadRef(ref)[0]);
  // All but the second have been delivered; that one is under way when its time is up.
  await expect
    .poll(async () => (await scene.tenant.api.get("/v1/deliveries?status=succeeded")).body.data)
    .toHaveLength(3);
  const run = (sql: string) => scene.db.prepare(sql).bind(ids[1]).run();
  await run("update delivery set status = 'processing', terminal_at = null, final_outcome = null where event_id = ?");
  await expire(scene);
  const deletion = createDeletion(scene);
  await deletion.tick();
  expect(await deletion.counts()).toMatchObject({ events: 1, deliveries: 1 });
  expect(await head()).not.toBeNull();
  // Its rows are kept until it has ended, and shown to nobody meanwhile.
  expect((await scene.tenant.api.get(`/v1/events/${ids[1]}`)).status).toBe(404);

  await run(
    "update delivery set status = 'succeeded', terminal_at = 1, final_outcome = 'delivered' where event_id = ?",
  );
  deletion.state.eventsAfter = [scene.tenant.id, ""];
  await deletion.tick();
  expect(await deletion.counts()).toEqual({ events: 0, deliveries: 0, attempts: 0 });
  expect(await head()).toBeNull();
});

test("an event whose delivery waits past its end has it ended, without a request, and is deleted after that", async () => {
  const scene = await createScene();
  const delivery = await scene.publishOne();
  await expire(scene);
  const deletion = createDeletion(scene);
  await deletion.tick();
  expect((await deletion.counts()).events).toBe(1);
  await attempt(scene.deps, scene.context, delivery.call(1));
  const row = await scene.db
    .prepare("select status, final_outcome, attempt_count from delivery where event_id = ?")
    .bind(delivery.ref.eventId)
    .first();
  expect(row).toEqual({ status: "expired", final_outcome: "expired", attempt_count: 0 });
  deletion.state.eventsAfter = [scene.tenant.id, ""];
  await deletion.tick();
  expect((await deletion.counts()).events).toBe(0);
});
