import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import type { LaneDeps } from "../../../src/app/lane/lane-state.ts";
import { shardsOf } from "../../../src/compose.ts";
import { deliveryId } from "../../../src/core/ids.ts";
import { createCloseLedger } from "../../../src/storage/ledger/close.ts";
import { countingEnv, createCost } from "../support/counting.ts";
import { createHung, endpointOf, enter, hangingConsumer, names, placeOf, routeOf, SEEN } from "./hung.ts";
import { cancelAll, createRandom, drain, inFlightOf, reroute } from "./support.ts";

type Closing = Parameters<LaneDeps["closeAttempts"]>[0][number];

test(
  "an endpoint that hangs holds eight requests, goes to its lane, and comes back by one, two, four, firsts first",
  { timeout: 60_000 },
  async () => {
    const fixture = await createHung();
    const ids = await fixture.publishAll(names(24));
    const consumer = hangingConsumer(fixture);
    await consumer.ring(ids.slice(0, 12));
    await expect.poll(() => consumer.later).toHaveLength(4);
    await expect.poll(() => consumer.sent()).toBe(8);
    expect(await endpointOf(fixture)).toMatchObject({ quarantined_at: null });

    fixture.forward(5_000);
    await consumer.ring(ids.slice(12, 14));
    await expect.poll(() => consumer.later).toHaveLength(6);
    const { quarantined_at, revision } = await endpointOf(fixture);
    expect(quarantined_at).not.toBeNull();
    expect(await inFlightOf(fixture)).toHaveLength(8);
    expect((await fixture.rows()).every(({ lane_key }) => lane_key !== null)).toBe(true);
    const lane = (await fixture.tenant.api.get(`/v1/endpoints/${fixture.endpointId}/lane`)).body;
    expect(lane).toMatchObject({ mode: "unordered", quarantined_at, depth: 24 });

    // Another isolate that finds out is too late.
    await consumer.deps.quarantine(placeOf(fixture), SEEN);
    expect((await endpointOf(fixture)).revision).toBe(revision);
    // What is accepted now goes to the lane at once; a doorbell of before does nothing.
    await fixture.publishAll(names(1, 24));
    await consumer.ring(ids.slice(18));
    await expect.poll(() => consumer.later).toHaveLength(6);
    expect(consumer.sent()).toBe(8);

    consumer.end({ kind: "timeout", status: null });
    await fixture.context.settled();
    const own = fixture.createLane();
    fixture.answer = () => null;
    await own.run();
    expect(fixture.sent.map(({ attempt }) => attempt)).toEqual([1]);
    expect(own.state.drain).toMatchObject({ size: 1, misses: 1 });

    let most = 0;
    fixture.forward(60_000);
    fixture.answer = async () => {
      most = Math.max(most, (await inFlightOf(fixture)).length);
      return new Response("ok");
    };
    await drain(fixture, () => [own]);
    const after = fixture.sent.slice(1);
    const attempts = after.map(({ attempt }) => attempt);
    // Where the last of the one and the first of the other go side by side, either may be the quicker.
    expect(attempts.slice(0, 8)).toEqual(Array.from({ length: 8 }, () => 1));
    expect(attempts.slice(-4)).toEqual([2, 2, 2, 2]);
    expect(attempts.filter((n) => n === 1)).toHaveLength(16);
    expect(attempts.filter((n) => n === 2)).toHaveLength(9);
    expect(new Set(after.map(({ name }) => name)).size).toBe(25);
    expect(most).toBeLessThanOrEqual(16);
    await own.run();
    expect(await endpointOf(fixture)).toMatchObject({ quarantined_at: null });
    expect(await routeOf(fixture)).toBe("queue");
  },
);

test(
  "what has not been tried stands before ten thousand retries, however the endpoint came to its lane",
  { timeout: 30_000 },
  async () => {
    const fixture = await createHung();
    await fixture.publishAll(names(2));
    // The older half has failed once.
    await fixture.db
      .prepare("update delivery set attempt_count = 1, next_attempt_at = 9e14 where endpoint_id = ?")
      .bind(fixture.endpointId)
      .run();
    await fixture.publishAll(names(2, 2));
    await reroute(fixture, "unordered", "lane");
    const order = async () => (await fixture.rows()).map(({ name }) => name);
    expect([(await order()).slice(0, 2).toSorted(), (await order()).slice(2).toSorted()]).toEqual([
      ["/0002", "/0003"],
      ["/0000", "/0001"],
    ]);
    const { db, endpointId, tenant } = fixture;
    const numbers = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 10000)";
    const id = "'evt_00' || printf('%024d', n.i)";
    const bind = (sql: string) => db.prepare(sql).bind(tenant.id, endpointId);
    await db.batch([
      bind(
        `insert into event (tenant_id, id, source_id, type, payload_ref, payload_sha256, payload_size, payload_is_json,
         content_type, occurred_at, relayed_at, expires_at)
       ${numbers} select ?1, ${id}, (select id from source where tenant_id = ?1 and name = 'orders'), 'old.event', 'r#0', x'00', 2, 1,
         'application/json', 0, 0, 9e15 from n where ?2 is not null`,
      ),
      bind(
        `insert into delivery (tenant_id, event_id, endpoint_id, subscription_id, lane_key, lane_position, status, attempt_count,
         retry_policy_id, created_at, next_attempt_at, expires_at)
       ${numbers} select ?1, ${id}, ?2, (select id from subscription where endpoint_id = ?2), '~ ' || ${id}, 1, 'pending', 1,
         (select retry_policy_id from endpoint where id = ?2), 0, 9e14, 9e15 from n`,
      ),
    ]);
    const view = await fixture.createLane().deps.loadLane(tenant.id, endpointId, "", 2, 1, fixture.now());
    expect(view.lanes.map(({ deliveries }) => deliveries[0]!.attemptCount)).toEqual([0, 0]);
    // Back to the queues and again to the lane: that is the order of every move.
    await reroute(fixture, "unordered", "queue");
    await reroute(fixture, "unordered", "lane");
    const passed = `select count(*) from delivery where endpoint_id = ?2 and tenant_id = ?1 and attempt_count = 0 and lane_key > (
      select min(lane_key) from delivery x where x.endpoint_id = ?2 and x.attempt_count > 0)`;
    expect(await bind(passed).first<number>("count(*)")).toBe(0);
    const { results } = await bind(
      `select attempt_count, count(*) as n from delivery where endpoint_id = ?2 and tenant_id = ?1 and lane_key is not null
       group by 1 order by 1`,
    ).all();
    expect(results).toEqual([
      { attempt_count: 0, n: 2 },
      { attempt_count: 1, n: 10_002 },
    ]);
    for (const table of ["delivery", "event"])
      await db.prepare(`delete from ${table} where tenant_id = ?`).bind(tenant.id).run();
  },
);

test(
  "a failure is put behind first attempts where nothing orders the lane, and costs nothing more where something does",
  { timeout: 30_000 },
  async () => {
    let ofStrict = 0;
    for (const mode of ["strict", "keyed", "unordered"]) {
      const fixture = await createHung({ ordering_mode: mode, concurrency_cap: 1 });
      await fixture.publishAll(["k/0"]);
      await fixture.publishAll(["k/1"]);
      const cost = createCost();
      const { closeAttempts } = createCloseLedger(shardsOf(countingEnv(env as Env, cost)).get(fixture.tenant.shard)!);
      const writes: number[] = [];
      async function counted(closings: Closing[]) {
        cost.rowsWritten = 0;
        await closeAttempts(closings);
        writes.push(cost.rowsWritten);
      }
      fixture.answer = ({ name, attempt }) =>
        new Response(null, { status: name === "k/0" && attempt === 1 ? 500 : 200 });
      const createLane = () =>
        fixture.createLane("a", 0, (deps) => ({
          ...deps,
          closeAttempts: counted,
          // Without the claim of the next, which is counted elsewhere.
          closeAndClaim: async (closing) => {
            await counted([closing]);
            return false;
          },
        }));
      await drain(fixture, () => [createLane()]);
      const sent = fixture.sent.map(({ name }) => name).join();
      expect(sent).toBe(mode === "unordered" ? "k/0,k/1,k/0" : "k/0,k/0,k/1");
      if (mode === "strict") ofStrict = writes[0]!;
      // The delivery once more, and its new place in the lane.
      expect(writes[0]).toBe(mode === "unordered" ? ofStrict + 2 : ofStrict);
    }
  },
);

test(
  "objects that are lost at any moment, and receivers that hang at any moment, lose and double nothing",
  { timeout: 60_000 },
  async () => {
    const random = createRandom(5);
    for (let round = 0; round < 2; round++) {
      const fixture = await createHung();
      await fixture.publishAll(names(15));
      await enter(fixture);
      fixture.answer = () => (random() < 0.25 ? null : new Response("ok"));
      let lane = fixture.createLane();
      // Every third pump finds a new object.
      await drain(fixture, () => [random() < 0.33 ? (lane = fixture.createLane()) : lane], 500);
      const succeeded = fixture.sent.filter(({ name }, i, all) => all.findLastIndex((one) => one.name === name) === i);
      expect(succeeded).toHaveLength(15);
      for (const [, ofOne] of Map.groupBy(fixture.sent, ({ name }) => name))
        expect(ofOne.map(({ attempt }) => attempt)).toEqual(ofOne.map((_, i) => i + 1));
      expect((await fixture.rows()).every(({ status }) => status === "succeeded")).toBe(true);
    }
  },
);

test(
  "one that answers as much as it may be sent goes back with what still waits, which queues then deliver",
  { timeout: 60_000 },
  async () => {
    const fixture = await createHung();
    await fixture.publishAll(names(60));
    await enter(fixture);
    const own = fixture.createLane();
    for (let n = 0; n < 5 && (await routeOf(fixture)) === "lane"; n++) await own.run();
    expect(await endpointOf(fixture)).toMatchObject({ quarantined_at: null });
    expect(await routeOf(fixture)).toBe("queue");
    const rows = await fixture.rows();
    const open = rows.filter(({ status }) => status === "pending");
    expect(open.length).toBeGreaterThan(0);
    expect(fixture.sent).toHaveLength(60 - open.length);
    expect(open.every(({ lane_key }) => lane_key === null)).toBe(true);
    const consumer = hangingConsumer(fixture);
    consumer.end({ kind: "response", status: 200, bodyComplete: true });
    const ids = open.map((row) =>
      deliveryId({ eventId: row["event_id"], endpointId: fixture.endpointId, replayNo: 0 }),
    );
    for (let i = 0; i < ids.length; i += 8) {
      await consumer.ring(ids.slice(i, i + 8));
      await fixture.context.settled();
    }
    expect(consumer.sent()).toBe(open.length);
    expect(
      (await fixture.rows()).every(({ status, attempt_count }) => status === "succeeded" && attempt_count === 1),
    ).toBe(true);
  },
);

test.each([
  ["in quarantine", {}, true],
  ["with a cap", { concurrency_cap: 1 }, false],
])(
  "first failures alone start the clock of an endpoint %s, whose retries have no turn",
  async (_how, settings, hangs) => {
    const fixture = await createHung(settings);
    await fixture.publishAll(names(5));
    if (hangs) await enter(fixture);
    const isRunningAtFirsts: boolean[] = [];
    fixture.answer = async ({ attempt }) => {
      if (attempt === 1) isRunningAtFirsts.push((await endpointOf(fixture)).failing_since !== null);
      fixture.forward(5_000);
      return hangs ? null : new Response(null, { status: 500 });
    };
    const lane = fixture.createLane();
    for (let n = 0; n < 20 && isRunningAtFirsts.length < 5; n++) {
      await lane.run();
      fixture.forward(60_000);
    }
    expect([isRunningAtFirsts[0], isRunningAtFirsts.at(-1)]).toEqual([false, true]);
    await cancelAll(fixture);
  },
);
