import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { composeShard } from "../../../src/compose.ts";
import { expandFanOut } from "../../../src/app/publish/expand-fan-out.ts";
import { authorizePublisher, createPublishConfigCache } from "../../../src/app/publish/publish-config.ts";
import { publishEvents } from "../../../src/app/publish/publish-events.ts";
import { compileFilter } from "../../../src/core/filter/filter.ts";
import { createFilterCache } from "../../../src/core/filter/filter-cache.ts";
import { countingEnv, createCost } from "../support/counting.ts";
import { createCrowd, type Crowd } from "../support/crowd.ts";
import { publish } from "../support/worker.ts";

const event = { type: "order.created", source: "orders" };

/** Gives the subscriptions of a crowd filters, by the number of their endpoint. */
async function filterCrowd({ db, tenant, endpointIds, subscriptionOf }: Crowd, filterOf: (n: number) => string | null) {
  const rows = endpointIds.map((id, n) => [subscriptionOf(id), filterOf(n)]);
  await db.batch([
    db
      .prepare(
        `insert into subscription (tenant_id, id, endpoint_id, event_type_pattern, created_at, filter)
         select ?2, s.id, s.endpoint_id, s.event_type_pattern, s.created_at, j.value ->> 1
         from json_each(?1) j cross join subscription s on s.tenant_id = ?2 and s.id = j.value ->> 0
         where true on conflict (tenant_id, id) do update set filter = excluded.filter`,
      )
      .bind(JSON.stringify(rows), tenant.id),
    db.prepare("update tenant set revision = revision + 1 where id = ?").bind(tenant.id),
  ]);
}

test("5,000 subscriptions with 500 filters are matched without a read beyond what the commit proves, each compiled once", async () => {
  const crowd = await createCrowd(5_000);
  await filterCrowd(crowd, (n) => `payload.n == ${n % 500} && payload.tags.exists(t, t == "a")`);
  const compiled: string[] = [];
  const publishConfigs = {
    ...createPublishConfigCache(),
    filters: createFilterCache(120_000, (source) => (compiled.push(source), compileFilter(source))),
  };
  const send = async (payload: string, bindings: Env = env as Env) => {
    const shard = composeShard(bindings, crowd.context.context, crowd.tenant.shard);
    const quiet = { announce: () => {}, announceFanOuts: () => {}, announceLane: () => {} };
    return publish({ ...shard, ...quiet, publishConfigs, now: crowd.now }, crowd.tenant, event, payload);
  };
  await send('{"n":7,"tags":["a"]}');
  expect(compiled).toHaveLength(500);
  expect(new Set(compiled).size).toBe(500);

  const cost = createCost();
  const accepted = await send('{"n":8,"tags":["b","a"]}', countingEnv(env as Env, cost));
  expect(accepted).toMatchObject({ deliveryCount: 10, skippedCount: 0 });
  // One trip, the commit. It reads by key what it writes, and nothing of the 4,990 others.
  expect(cost).toMatchObject({ ledgerTrips: 1, classA: 1, classB: 0 });
  const unfiltered = createCost();
  const ten = await createCrowd(10);
  await publish({ ...ten.shard, now: ten.now }, ten.tenant, event);
  const shard = composeShard(countingEnv(env as Env, unfiltered), ten.context.context, ten.tenant.shard);
  const quiet = { announce: () => {}, announceFanOuts: () => {}, announceLane: () => {} };
  await publish({ ...shard, ...quiet, now: ten.now }, ten.tenant, event);
  expect(cost.rowsRead).toBeLessThanOrEqual(unfiltered.rowsRead);
  expect(cost.rowsWritten).toBe(unfiltered.rowsWritten);
  expect(compiled).toHaveLength(500);
});

test("a large fan-out owes what filters said at acceptance, whatever becomes of the filters, with what they cost", async () => {
  const crowd = await createCrowd(2_000);
  await filterCrowd(crowd, (n) => (n % 4 === 0 ? "payload.n == 2" : n % 4 === 1 ? null : "payload.n == 1"));
  const accepted = await publish(crowd.shard, crowd.tenant, event);
  expect(accepted).toMatchObject({ deliveryCount: 1_500 });
  expect(await crowd.openParts()).toBeGreaterThan(0);
  await filterCrowd(crowd, () => "false");
  const [changed] = crowd.endpointIds.filter((id, n) => n > 1_000 && n % 4 === 2 && !crowd.isStrict(id));
  // A change of its endpoint makes what it is owed: what the filter cost goes the same way.
  expect((await crowd.tenant.api.post(`/v1/endpoints/${changed}/disable`)).status).toBe(200);
  expect((await crowd.deliveriesOf(accepted.id)).get(changed!)).toMatchObject({ filter_match_steps: 4 });
  await expandFanOut(crowd.expand, { tenantId: crowd.tenant.id, eventId: accepted.id });
  const deliveries = await crowd.deliveriesOf(accepted.id);
  expect([...deliveries.keys()].toSorted()).toEqual(crowd.endpointIds.filter((_, n) => n % 4 !== 0));
  for (const [n, id] of crowd.endpointIds.entries()) {
    if (n % 4 !== 0) expect(deliveries.get(id)!["filter_match_steps"]).toBe(n % 4 === 1 ? null : 4);
  }
});

test("thousands of filters that fail are all flagged, the event keeps a hundred and their number, and no row is read twice", async () => {
  const crowd = await createCrowd(3_000);
  await filterCrowd(crowd, (n) => `payload.n > "${n}"`);
  await publish(crowd.shard, crowd.tenant, { ...event, type: "warm.up" }, '{"n":"9999"}');
  const cost = createCost();
  const shard = composeShard(countingEnv(env as Env, cost), crowd.context.context, crowd.tenant.shard);
  const accepted = await publish({ ...shard, announce: () => {}, now: crowd.now }, crowd.tenant, event, '{"n":1}');
  expect(accepted).toMatchObject({ deliveryCount: 0, skippedCount: 3_000 });
  expect(accepted.skipped).toHaveLength(100);
  const flagged = crowd.db.prepare(
    "select count(*) as n from subscription where tenant_id = ? and filter_failed_event_id = ?",
  );
  expect(await flagged.bind(crowd.tenant.id, accepted.id).first("n")).toBe(3_000);
  expect(cost).toMatchObject({ ledgerTrips: 1, rowsWritten: 3_001 });
  // Of each failure: its place in the list, the event, and its subscription for reading and for writing.
  expect(cost.rowsRead).toBeLessThan(3_000 * 6);
  expect((await crowd.tenant.api.get(`/v1/events/${accepted.id}`)).body).toMatchObject({ skipped_count: 3_000 });
});

test("filters of one event stop at what an event may cost, and the rest of a batch is refused for what a request may", async () => {
  const crowd = await createCrowd(60);
  await filterCrowd(crowd, (n) => `payload.all(x, payload.all(y, x != y + ${n + 1000}))`);
  const payload = new TextEncoder().encode(JSON.stringify(Array.from({ length: 400 }, (_, n) => n)));
  const item = { fields: event, payload, payloadIsJson: true, contentType: "application/json", contentEncoding: null };
  const publisher = await authorizePublisher(crowd.shard, { tenantId: crowd.tenant.id });
  const results = await publishEvents(
    crowd.shard,
    publisher,
    Array.from({ length: 6 }, () => item),
    null,
  );
  for (const result of results.slice(0, 4)) {
    expect(result).toMatchObject({ deliveryCount: 0, skippedCount: 60 });
    const reasons = (result as any).skipped.map(({ reason }: any) => reason);
    expect(reasons.slice(0, 50)).toEqual(Array(50).fill("filter_work_exceeded"));
    expect(reasons.slice(50)).toEqual(Array(10).fill("event_work_exceeded"));
  }
  for (const result of results.slice(4)) expect(result).toMatchObject({ code: "fan_out_too_large" });
  // Alone each of them goes through.
  expect(await publishEvents(crowd.shard, publisher, [item], null)).toMatchObject([{ skippedCount: 60 }]);
});
