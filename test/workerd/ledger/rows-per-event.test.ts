import { env } from "cloudflare:workers";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { composeLane, composeShard } from "../../../src/compose.ts";
import { deliveryId } from "../../../src/core/ids.ts";
import { createLaneFixture, withoutLanes, type LaneFixture } from "../lane/support.ts";
import { createTestTenant, type TestTenant } from "../support/api.ts";
import { countingEnv, createCost, type Cost } from "../support/counting.ts";
import { attempt, createTestContext, deliverDeps, publish, shardDeps } from "../support/worker.ts";

let status = 200;
let headers: Record<string, string> = {};
beforeEach(() => {
  status = 200;
  headers = {};
  vi.spyOn(globalThis, "fetch").mockImplementation(async () => new Response("ok", { status, headers }));
});
afterEach(() => vi.restoreAllMocks());

async function createSubscriber(tenant: TestTenant) {
  await tenant.api.post("/v1/sources", { name: "orders" });
  const endpoint = await tenant.api.post("/v1/endpoints", { url: "https://consumer.example/hook" });
  await tenant.api.post("/v1/subscriptions", { endpoint_id: endpoint.body.id, event_type_pattern: "*" });
  return endpoint.body.id as string;
}

const table: Record<string, Cost> = {};

/** Publishes one event and makes its attempts, the cost of each stretch apart; `warm` leaves loading config out. */
async function countEvent(fields: Record<string, unknown>, statuses: number[]) {
  const tenant = await createTestTenant();
  const endpointId = await createSubscriber(tenant);
  const context = createTestContext();
  const event = { type: "order.created", source: "orders", ...fields };
  await publish(shardDeps(tenant, context), tenant, { type: "order.created", source: "orders" });

  const published = createCost();
  const counted = composeShard(countingEnv(env as Env, published), context.context, tenant.shard);
  const accepted = await publish(counted, tenant, event);
  await context.settled();
  const delivered = createCost();
  const deps = deliverDeps(tenant, context, countingEnv(env as Env, delivered));
  const id = deliveryId({ eventId: accepted.id, endpointId, replayNo: 0 });
  for (const [i, answer] of statuses.entries()) {
    status = answer;
    const due = { ...deps, now: () => Date.now() + i * 3_600_000 };
    await attempt(due, context, { tenantId: tenant.id, deliveryId: id, attemptNumber: i + 1 });
  }
  const delivery = await tenant.api.get(`/v1/deliveries/${id}`);
  expect(delivery.body).toMatchObject({ status: "succeeded", attempt_count: statuses.length });
  return { published, delivered, total: published.rowsWritten + delivered.rowsWritten };
}

test("an event with a key, delivered at its first attempt, writes ten rows; its ack takes two trips", async () => {
  const { published, delivered, total } = await countEvent({ idempotency_key: "k1" }, [200]);
  table["publish, with a key"] = published;
  table["first attempt, success"] = delivered;
  expect(total).toBeLessThanOrEqual(10);
  expect(published).toMatchObject({ ledgerTrips: 1, classA: 1, queueMessages: 1 });
  expect(delivered.ledgerTrips).toBe(3);
});

test("without a key it writes nine", async () => {
  const { published, total } = await countEvent({}, [200]);
  table["publish, without a key"] = published;
  expect(total).toBeLessThanOrEqual(9);
});

test("a failure before the success costs a claim, an attempt, its close and its place in attempt_failed more", async () => {
  const { delivered } = await countEvent({}, [500, 200]);
  table["one failure, then success"] = delivered;
  expect(delivered.rowsWritten).toBe(table["first attempt, success"]!.rowsWritten + 7);
});

test("a receiver's own request id costs a failure one row more, by which it is found, and a success none", async () => {
  headers = { "x-request-id": "their-1" };
  const { total } = await countEvent({ idempotency_key: "k1" }, [200]);
  expect(total).toBeLessThanOrEqual(10);
  const { delivered } = await countEvent({}, [500, 200]);
  expect(delivered.rowsWritten).toBe(table["one failure, then success"]!.rowsWritten + 1);
});

test("an endpoint that goes on failing costs no attempt more; that it began to, and that it ended, costs a row each", async () => {
  const { delivered } = await countEvent({}, [500, 500, 500, 500, 200]);
  expect(delivered.rowsWritten).toBe(table["first attempt, success"]!.rowsWritten + 4 * 7 + 2);
});

test("a duplicate publish writes no row", async () => {
  const tenant = await createTestTenant();
  await createSubscriber(tenant);
  const context = createTestContext();
  const event = { type: "order.created", source: "orders", idempotency_key: "again" };
  await publish(shardDeps(tenant, context), tenant, event);
  const cost = createCost();
  const second = await publish(shardDeps(tenant, context, countingEnv(env as Env, cost)), tenant, event);
  table["publish, duplicate"] = cost;
  expect(second.duplicate).toBe(true);
  expect(cost.rowsWritten).toBe(0);
});

/** Publishes `count` events to an endpoint with a lane, and lets the lane bring them to their end. */
async function countLane(endpoint: Record<string, unknown>, count: number) {
  const fixture = await createLaneFixture(endpoint);
  const { tenant, context } = fixture;
  await publish(shardDeps(tenant, context, withoutLanes), tenant, { type: "warm.up", source: "orders" });
  await fixture.createLane().run();

  const published = createCost();
  const bindings = countingEnv(withoutLanes, published);
  for (let n = 0; n < count; n++) {
    const event = { type: "order.created", source: "orders", idempotency_key: `key-${n}`, ordering_key: "k" };
    await publish(shardDeps(tenant, context, bindings), tenant, event);
  }
  const delivered = createCost();
  const lane = fixture.createLane("counted", 0, (deps) => ({ ...deps, ...countedLedger(fixture, delivered) }));
  await lane.run();
  expect(await fixture.openCount()).toBe(0);
  return { published, delivered, total: published.rowsWritten + delivered.rowsWritten };
}

/** The calls by which a lane speaks to its ledger, counted. */
function countedLedger({ tenant, context }: LaneFixture, cost: Cost) {
  const counted = composeLane(countingEnv(withoutLanes, cost), context.context, tenant.shard, async () => {});
  const { loadLane, claimHead, closeAndClaim, closeAttempts, endHead } = counted;
  return { loadLane, claimHead, closeAndClaim, closeAttempts, endHead };
}

test("an event with a key to a strict endpoint, delivered at its first attempt, writes nine rows at most", async () => {
  const { published, delivered, total } = await countLane({ ordering_mode: "strict" }, 1);
  table["publish, strict"] = published;
  table["strict, first attempt"] = delivered;
  expect(total).toBeLessThanOrEqual(9);
});

test("with 32 queued in a strict lane an event costs about one trip, and no more rows than alone", async () => {
  const { delivered } = await countLane({ ordering_mode: "strict" }, 32);
  table["strict, 32 queued"] = delivered;
  expect(delivered.rowsWritten).toBeLessThanOrEqual(32 * table["strict, first attempt"]!.rowsWritten);
  // Each run of sixteen costs a load and a claim besides, and the last load finds the lane empty.
  expect(delivered.ledgerTrips).toBeLessThanOrEqual(32 + 2 * 2 + 2);
});

test("the table for docs/cost.md", () => {
  for (const [step, cost] of Object.entries(table)) console.log(step.padEnd(28), JSON.stringify(cost));
  expect(Object.keys(table)).toHaveLength(8);
});
