import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import type { DeliveryCall } from "../../../src/app/deliver/delivery-call.ts";
import { createWatchState, tick, type WatchDeps } from "../../../src/app/watch/tick.ts";
import { composeWatch } from "../../../src/compose.ts";
import { cancelAll, createLaneFixture } from "../lane/support.ts";
import { createScene, type Scene } from "../support/scene.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

/** More than all tests together leave in the shard: nobody else's rows keep a tenant's from a page. */
const EVERYTHING = 1_000_000;

/** A watchdog over the real ledger that sees one tenant's work, at any moment, and rings into a list. */
function createWatch(scene: Scene) {
  const rung: DeliveryCall[] = [];
  const woken: { endpointId: string; generation: number }[] = [];
  let aheadMs = 0;
  let reportsUntil = 0;
  const mine = <T extends { tenantId: string }>(rows: T[]) =>
    rows.filter(({ tenantId }) => tenantId === scene.tenant.id);
  const real = composeWatch(env as Env, scene.context.context, scene.tenant.shard);
  const deps: WatchDeps = {
    ...real,
    now: () => Date.now() + aheadMs,
    listOpenParts: async (beforeId) => mine(await real.listOpenParts(beforeId, EVERYTHING)),
    listDue: async (until, after) => mine(await real.listDue(until, after, EVERYTHING)),
    listLongRetriesDue: async (from, until, minDelayMs) =>
      mine(await real.listLongRetriesDue(from, until, minDelayMs, EVERYTHING)),
    listExpiredLeases: async (now) => mine(await real.listExpiredLeases(now, EVERYTHING)),
    listDueReplayParts: async (now) => mine(await real.listDueReplayParts(now, EVERYTHING)),
    listEndedHolds: async (now) => mine(await real.listEndedHolds(now, EVERYTHING)),
    // Always of this tenant: a walk through those of all tests would take many ticks.
    walkOldEvents: async (_after, beforeId, limit) => {
      const { events } = await real.walkOldEvents([scene.tenant.id, ""], beforeId, limit);
      return { events: mine(events), next: null };
    },
    listOverdueLanes: async (...args) => {
      const { lanes, next } = await real.listOverdueLanes(...args);
      return { lanes: mine(lanes), next };
    },
    wakeLane: ({ endpointId, generation }) => void woken.push({ endpointId, generation }),
    ringNow: async (calls) => void rung.push(...calls),
    ringLater: (calls) => void rung.push(...calls),
    queueAgeMs: async () => 0,
    reportsUntil: async () => reportsUntil,
  };
  let state = createWatchState(Date.now());
  return {
    rung,
    woken,
    /** As a watchdog that has been out of memory. */
    forget: () => void (state = createWatchState(Date.now() + aheadMs)),
    forward: (ms: number) => void (aheadMs += ms),
    awaitReportsFor: (ms: number) => void (reportsUntil = Date.now() + aheadMs + ms),
    tick() {
      // The walk over old events begins at this tenant; the others are other tests', and they may be many.
      state.eventsAfter = [scene.tenant.id, ""];
      return tick(deps, state);
    },
  };
}

async function claim(scene: Scene, delivery: Awaited<ReturnType<Scene["publishOne"]>>, n: number, now: number) {
  const claims = [
    {
      ...delivery.ref,
      attemptNumber: n,
      token: `${delivery.id}:${n}`,
      endpointRevision: 1,
      signingSecretIds: [],
      workerId: "w",
      relayRegion: null,
      leaseMs: 45_000,
    },
  ];
  expect((await scene.deps.claimDeliveries(claims, now)).size).toBe(1);
}

test("work whose doorbell was lost rings again once it is overdue, and not before", async () => {
  const scene = await createScene();
  const delivery = await scene.publishOne();
  const watch = createWatch(scene);
  const nextAt = await watch.tick();
  expect(watch.rung).toEqual([]);
  expect(nextAt).not.toBeNull();
  watch.forward(31_000);
  await watch.tick();
  expect(watch.rung).toEqual([delivery.call(1)]);
});

test("a lease that has ended is recovered: its attempt is abandoned, the delivery is due and rings", async () => {
  const scene = await createScene();
  const delivery = await scene.publishOne();
  const watch = createWatch(scene);
  await claim(scene, delivery, 1, Date.now());
  await watch.tick();
  expect(await delivery.read()).toMatchObject({ status: "processing" });
  watch.forward(46_000);
  await watch.tick();
  expect(watch.rung).toEqual([delivery.call(2)]);
  expect(await delivery.read()).toMatchObject({
    status: "pending",
    attempts: [{ outcome_class: "unreachable", error_class: "abandoned", status_code: null }],
  });
});

test("leases wait while reports of attempts are on their way to the ledger, but not for ever", async () => {
  const scene = await createScene();
  const delivery = await scene.publishOne();
  const watch = createWatch(scene);
  await claim(scene, delivery, 1, Date.now());
  watch.awaitReportsFor(60 * MINUTE_MS);
  watch.forward(MINUTE_MS);
  await watch.tick();
  expect(await delivery.read()).toMatchObject({ status: "processing" });
  watch.forward(11 * MINUTE_MS);
  await watch.tick();
  expect(await delivery.read()).toMatchObject({ status: "pending" });
});

test("five abandoned attempts in a row over ten minutes end a delivery; five in quick succession do not", async () => {
  for (const [gapMs, status] of [
    [3 * MINUTE_MS, "dead_letter"],
    [MINUTE_MS, "pending"],
  ] as const) {
    const scene = await createScene({ retry_policy: { max_attempts: 1 } });
    const delivery = await scene.publishOne();
    const watch = createWatch(scene);
    for (let n = 1, at = 0; n <= 5; n++, at += gapMs) {
      await claim(scene, delivery, n, Date.now() + at);
      watch.forward(gapMs);
      await watch.tick();
    }
    const ended = await delivery.read();
    expect(ended).toMatchObject({ status, attempt_count: 5 });
    if (status === "dead_letter") expect(ended.final_outcome).toBe("abandoned");
  }
});

test("a hold ends with the delivery's window: the delivery expires while its endpoint is disabled", async () => {
  const scene = await createScene({ retry_policy: { max_age_seconds: 60 } });
  const delivery = await scene.publishOne();
  await scene.tenant.api.post(`/v1/endpoints/${scene.endpointId}/disable`);
  await scene.deps.holdDeliveries([{ ...delivery.ref, holdUntil: Date.now() + MINUTE_MS }]);
  const watch = createWatch(scene);
  await watch.tick();
  expect(await delivery.read()).toMatchObject({ status: "pending" });
  watch.forward(MINUTE_MS + 1_000);
  await watch.tick();
  expect(await delivery.read()).toMatchObject({ status: "expired", final_outcome: "expired", attempts: [] });
});

test("deliveries that an interrupted enabling left held come back", async () => {
  const scene = await createScene();
  const delivery = await scene.publishOne();
  await scene.tenant.api.post(`/v1/endpoints/${scene.endpointId}/disable`);
  await scene.deps.holdDeliveries([{ ...delivery.ref, holdUntil: Date.now() + MINUTE_MS }]);
  await scene.db.prepare("update endpoint set disabled_at = null where id = ?").bind(scene.endpointId).run();
  const watch = createWatch(scene);
  await watch.tick();
  expect(watch.rung).toEqual([delivery.call(1)]);
});

test("a retry that waits longer than a message can rings at its time", async () => {
  const scene = await createScene();
  const delivery = await scene.publishOne();
  const watch = createWatch(scene);
  await watch.tick();
  await scene.db
    .prepare(
      "update delivery set attempt_count = 1, last_attempt_at = ?1, next_attempt_at = ?1 + 300000 where event_id = ?2",
    )
    .bind(Date.now(), delivery.ref.eventId)
    .run();
  watch.forward(299_000);
  await watch.tick();
  expect(watch.rung).toEqual([]);
  watch.forward(2_000);
  await watch.tick();
  expect(watch.rung).toEqual([delivery.call(2)]);
});

test("an expired event is not shown, and is deleted with its deliveries, attempts and payload; others stay", async () => {
  const scene = await createScene();
  const [old, kept, open] = [await scene.publishOne(), await scene.publishOne(), await scene.publishOne()];
  await claim(scene, old, 1, Date.now());
  const run = (sql: string, ...values: unknown[]) =>
    scene.db
      .prepare(sql)
      .bind(...values)
      .run();
  const end = "update delivery set status = 'succeeded', terminal_at = 1 where event_id in (?, ?)";
  await run(end, old.ref.eventId, kept.ref.eventId);
  await run("update event set expires_at = 2 where id in (?, ?)", old.ref.eventId, open.ref.eventId);
  // Kept longer than the setting says, for the sake of a delivery with a long window.
  await run("update event set expires_at = ? where id = ?", Date.now() + 60 * DAY_MS, kept.ref.eventId);
  const payload = await scene.db
    .prepare("select payload_ref from event where id = ?")
    .bind(old.ref.eventId)
    .first("payload_ref");
  expect((await scene.tenant.api.get(`/v1/events/${old.ref.eventId}`)).status).toBe(404);
  const left = async (table: string, column: string, { ref }: typeof old) =>
    scene.db.prepare(`select count(*) as n from ${table} where ${column} = ?`).bind(ref.eventId).first("n");

  const watch = createWatch(scene);
  // What is younger than the retention is not even looked at.
  await watch.tick();
  expect(await left("event", "id", old)).toBe(1);
  watch.forward(31 * DAY_MS);
  await watch.tick();
  for (const [table, column] of [
    ["event", "id"],
    ["delivery", "event_id"],
    ["attempt", "event_id"],
  ] as const) {
    expect(await left(table, column, old)).toBe(0);
  }
  expect(await (env as Env).PAYLOADS.head((payload as string).split("#")[0]!)).toBeNull();
  expect(await left("event", "id", kept)).toBe(1);
  // A delivery that is still open keeps its event until it has ended.
  expect(await left("event", "id", open)).toBe(1);
});

test("a lane whose wake or alarm was lost is woken once its head is overdue, at its present generation, and not before", async () => {
  const fixture = await createLaneFixture();
  await fixture.publishAll(["k/0", "k/1"]);
  await fixture.db.prepare("update endpoint set lane_generation = 3 where id = ?").bind(fixture.endpointId).run();
  const watch = createWatch(fixture);
  await watch.tick();
  expect(watch.woken).toEqual([]);
  watch.forward(31_000);
  await watch.tick();
  expect(watch.woken).toEqual([{ endpointId: fixture.endpointId, generation: 3 }]);
  // No queue has anything to do with it.
  expect(watch.rung).toEqual([]);
});

test("a lane whose head died with its object is woken when the lease is overdue", async () => {
  const fixture = await createLaneFixture();
  await fixture.publishAll(["k/0"]);
  const lost = fixture.createLane("lost", 0, (deps) => ({ ...deps, send: () => new Promise(() => {}) }));
  void lost.run();
  await expect.poll(async () => (await fixture.rows())[0]!["status"]).toBe("processing");
  const watch = createWatch(fixture);
  watch.forward(44_000 + 30_000);
  await watch.tick();
  expect(watch.woken).toEqual([]);
  watch.forward(31_000);
  await watch.tick();
  expect(watch.woken).toEqual([{ endpointId: fixture.endpointId, generation: 0 }]);
});

test("lanes that stand still by an operator's word, or wait for a retry, are not woken", async () => {
  for (const path of ["pause", "disable"]) {
    const fixture = await createLaneFixture();
    await fixture.publishAll(["k/0"]);
    await fixture.tenant.api.post(`/v1/endpoints/${fixture.endpointId}/${path}`);
    const watch = createWatch(fixture);
    watch.forward(3_600_000);
    await watch.tick();
    expect(watch.woken, path).toEqual([]);
  }
  const fixture = await createLaneFixture({ retry_policy: { delays_seconds: [7_200] } });
  fixture.answer = () => new Response(null, { status: 503 });
  await fixture.publishAll(["k/0"]);
  await fixture.createLane().run();
  const watch = createWatch(fixture);
  watch.forward(3_600_000);
  await watch.tick();
  expect(watch.woken).toEqual([]);
});

/** How often lanes were woken in passes as the watchdog makes them, each by one that remembers nothing. */
async function passTenMinutes(watch: ReturnType<typeof createWatch>): Promise<number> {
  const before = watch.woken.length;
  for (let passes = 0; passes < 20; passes++) {
    watch.forward(31_000);
    watch.forget();
    await watch.tick();
  }
  return watch.woken.length - before;
}

test("a strict lane whose head waits for a retry is not woken at each pass by what stands behind it", async () => {
  const fixture = await createLaneFixture({ retry_policy: { delays_seconds: [7_200], jitter: 0 } });
  fixture.answer = () => new Response(null, { status: 503 });
  await fixture.publishAll(["k/0", "k/1", "k/2"]);
  await fixture.createLane().run();
  const watch = createWatch(fixture);
  const woken = await passTenMinutes(watch);
  // To look itself, as a lane that is too long to say, which the watchdog need not remember.
  expect(woken).toBeGreaterThanOrEqual(1);
  expect(woken).toBeLessThanOrEqual(3);
  watch.forward(7_200_000);
  await watch.tick();
  await watch.tick();
  expect(watch.woken.length).toBeGreaterThan(1);
  await cancelAll(fixture);
});

test("a lane with more keys backing off than a tick looks at is woken to look itself", async () => {
  const fixture = await createLaneFixture({ ordering_mode: "keyed" });
  await fixture.publishAll(Array.from({ length: 201 }, (_, n) => `k${String(n).padStart(3, "0")}/0`));
  await fixture.db
    .prepare("update delivery set next_attempt_at = ? where endpoint_id = ? and lane_key <> 'k200'")
    .bind(Date.now() + DAY_MS, fixture.endpointId)
    .run();
  const watch = createWatch(fixture);
  expect(await passTenMinutes(watch)).toBeGreaterThanOrEqual(1);
  expect(watch.woken[0]).toEqual({ endpointId: fixture.endpointId, generation: 0 });
  await fixture.db
    .prepare("update delivery set status = 'cancelled', terminal_at = 1 where endpoint_id = ?")
    .bind(fixture.endpointId)
    .run();
});

test("each of more overdue lanes than one page holds is woken, in one pass", async () => {
  const fixture = await createLaneFixture();
  await fixture.publishAll(["k/0"]);
  const { db, tenant, endpointId } = fixture;
  // A thousand endpoints like this one, each with a delivery of the same event at the head of its lane.
  const numbers = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 1000)";
  const id = "'ep_page' || printf('%012d', n.i)";
  await db.batch(
    [
      `insert into endpoint (tenant_id, id, url, ordering_mode, route, retry_policy_id, created_at)
       ${numbers} select e.tenant_id, ${id}, e.url, 'strict', 'lane', e.retry_policy_id, 0
       from n cross join endpoint e where e.id = ?2 and e.tenant_id = ?1`,
      `insert into delivery (tenant_id, event_id, endpoint_id, subscription_id, lane_key, lane_position, status,
         retry_policy_id, created_at, next_attempt_at, expires_at)
       ${numbers} select d.tenant_id, d.event_id, ${id}, d.subscription_id, '', 1, 'pending', d.retry_policy_id, 0,
         d.next_attempt_at, d.expires_at from n cross join delivery d where d.endpoint_id = ?2 and d.tenant_id = ?1`,
    ].map((sql) => db.prepare(sql).bind(tenant.id, endpointId)),
  );
  const watch = createWatch(fixture);
  watch.forward(31_000);
  for (let n = 0; n < 4; n++) await watch.tick();
  expect(new Set(watch.woken.map((lane) => lane.endpointId)).size).toBe(1_001);
  expect(watch.woken).toHaveLength(1_001);
  // Nobody is to look for these any more.
  await db
    .prepare("update delivery set status = 'cancelled', terminal_at = 1 where tenant_id = ?")
    .bind(tenant.id)
    .run();
});
