import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { composeShard } from "../../../src/compose.ts";
import { countingEnv, createCost } from "../support/counting.ts";
import { publish } from "../support/worker.ts";
import { createFiltered } from "./support.ts";

const owedTo = (accepted: { deliveries: { subscriptionId: string }[] }) =>
  accepted.deliveries.map(({ subscriptionId }) => subscriptionId).toSorted();

test("an event goes to those whose filter it passes, and to those who have none", async () => {
  const f = await createFiltered([
    "payload.total > 10",
    "payload.total > 100",
    "payload.missing == 1",
    null,
    "event.type == 'order.created' && event.source == 'orders' && event.schema_version == 1",
    "has(event.ordering_key)",
  ]);
  const accepted = await f.publish({ total: 11 });
  expect(owedTo(accepted)).toEqual([f.ids[0], f.ids[3], f.ids[4]].toSorted());
  expect(accepted).toMatchObject({ deliveryCount: 3, skippedCount: 0, skipped: [] });
  expect(await f.readEvent(accepted.id)).toMatchObject({ delivery_count: 3, skipped_count: 0, skipped: [] });
  expect(owedTo(await f.publish({ total: 1 }, { ordering_key: "k" }))).toEqual(
    [f.ids[3], f.ids[4], f.ids[5]].toSorted(),
  );
});

test("9007199254740993 is not 9007199254740992, as it was published and as the answer shows", async () => {
  const f = await createFiltered(["payload.id == 9007199254740993", "payload.id == 9007199254740992"]);
  expect(owedTo(await f.publish('{"id":9007199254740993}'))).toEqual([f.ids[0]]);
  expect(owedTo(await f.publish('{"id": 9007199254740992}'))).toEqual([f.ids[1]]);
});

test("a delivery says what its filter cost, and one without a filter says nothing", async () => {
  const f = await createFiltered(["payload.total > 10", null]);
  await f.publish({ total: 11 });
  const { data } = (await f.api.get("/v1/deliveries")).body;
  const bySubscription = new Map(data.map((row: any) => [row.subscription_id, row]));
  expect(bySubscription.get(f.ids[0]!)).toMatchObject({ filter_match_steps: 4 });
  expect((bySubscription.get(f.ids[0]!) as any).filter_match_ms).not.toBe(0);
  expect(bySubscription.get(f.ids[1]!)).toMatchObject({ filter_match_steps: null, filter_match_ms: null });
});

test("filter_match_ms is what the clock says, and null where the clock stands still", async () => {
  const f = await createFiltered(["payload.total > 10"]);
  let now = 5;
  await f.publish({ total: 11 }, {}, { ...f.shard, clock: () => (now += 1.25049) });
  await f.publish({ total: 11 }, {}, { ...f.shard, clock: () => 77 });
  const { data } = (await f.api.get("/v1/deliveries")).body;
  expect(data.map((row: any) => row.filter_match_ms).toSorted()).toEqual([1.25, null]);
});

test("a filter that fails skips its subscription: on the event, in the answer, in its repetition, and as a flag", async () => {
  const f = await createFiltered(["payload.total > 10", "payload.total / payload.count > 1", null]);
  const accepted = await f.publish({ total: "eleven", count: 0 }, { idempotency_key: "k" });
  expect(owedTo(accepted)).toEqual([f.ids[2]]);
  const skipped = [
    { subscriptionId: f.ids[0], reason: "type_mismatch" },
    { subscriptionId: f.ids[1], reason: "type_mismatch" },
  ];
  expect(accepted).toMatchObject({ deliveryCount: 1, skippedCount: 2, skipped });
  expect(await f.publish({ total: "eleven", count: 0 }, { idempotency_key: "k" })).toEqual({
    ...accepted,
    duplicate: true,
  });
  const shown = skipped.map(({ subscriptionId, reason }) => ({ subscription_id: subscriptionId, reason }));
  expect(await f.readEvent(accepted.id)).toMatchObject({ delivery_count: 1, skipped_count: 2, skipped: shown });
  expect((await f.api.get("/v1/events")).body.data[0]).toMatchObject({ skipped_count: 2, skipped: shown });
  for (const n of [0, 1]) {
    expect(await f.readSubscription(n)).toMatchObject({
      filter_failed_at: expect.any(String),
      filter_failed_reason: "type_mismatch",
      filter_failed_event_id: accepted.id,
    });
  }
  expect(await f.readSubscription(2)).toMatchObject({ filter_failed_at: null, filter_failed_event_id: null });
  const divided = await f.publish({ total: 1, count: 0 });
  expect(divided.skipped).toEqual([{ subscriptionId: f.ids[1], reason: "division_by_zero" }]);
});

test("through the API an answer shows who was skipped, also in a batch", async () => {
  const f = await createFiltered(["payload.total > 10"]);
  const event = { type: "order.created", source: "orders", payload: { total: "x" } };
  const skipped = [{ subscription_id: f.ids[0], reason: "type_mismatch" }];
  const expected = { delivery_count: 0, deliveries: [], skipped_count: 1, skipped };
  expect(await f.api.post("/v1/events", event)).toMatchObject({ status: 202, body: expected });
  const { body } = await f.api.post("/v1/events/batch", { events: [event, { ...event, payload: { total: 11 } }] });
  expect(body.results).toMatchObject([
    { status: 202, ...expected },
    { status: 202, delivery_count: 1, skipped_count: 0, skipped: [] },
  ]);
});

test("a failing filter writes its flag once an hour, however many events it fails on, and setting a filter clears it", async () => {
  const f = await createFiltered(["payload.total > 10", "payload.total > 11"]);
  const at = Date.now() + 86_400_000;
  const rows = async (afterMs: number, payload: unknown = { total: "x" }) => {
    const cost = createCost();
    const counted = composeShard(countingEnv(env as Env, cost), f.context.context, f.tenant.shard);
    const { id } = await f.publish(payload, {}, { ...counted, now: () => at + afterMs, announce: () => {} });
    return { id, rowsWritten: cost.rowsWritten, ledgerTrips: cost.ledgerTrips };
  };
  await f.publish({ total: 1 }, { type: "warm.up" });
  const first = await rows(0);
  // The event, and two flags.
  expect(first).toMatchObject({ rowsWritten: 3, ledgerTrips: 1 });
  expect(await rows(1)).toMatchObject({ rowsWritten: 1, ledgerTrips: 1 });
  expect(await rows(3_599_999)).toMatchObject({ rowsWritten: 1, ledgerTrips: 1 });
  expect(await f.readSubscription(0)).toMatchObject({ filter_failed_event_id: first.id });
  const later = await rows(3_600_000, { total: null });
  expect(later).toMatchObject({ rowsWritten: 3, ledgerTrips: 1 });
  expect(await f.readSubscription(0)).toMatchObject({
    filter_failed_at: new Date(at + 3_600_000).toISOString(),
    filter_failed_event_id: later.id,
  });

  const path = `/v1/subscriptions/${f.ids[0]}`;
  await f.api.patch(path, { event_type_pattern: "order.*" });
  expect((await f.readSubscription(0)).filter_failed_at).not.toBeNull();
  await f.api.patch(path, { filter: "payload.total > 10" });
  expect(await f.readSubscription(0)).toMatchObject({ filter_failed_at: null, filter_failed_reason: null });
  expect((await f.readSubscription(1)).filter_failed_at).not.toBeNull();
});

test("an event whose key is taken flags nobody, and neither does a commit that lost to a change of the filter", async () => {
  const f = await createFiltered(["payload.total > 10"]);
  await f.publish({ total: 1 }, { idempotency_key: "k" });
  const reused = f.publish({ total: "x" }, { idempotency_key: "k" });
  await expect(reused).rejects.toMatchObject({ code: "idempotency_key_reused" });
  expect((await f.readSubscription(0)).filter_failed_at).toBeNull();

  let isChanged = false;
  const accepted = await f.publish(
    { total: "x" },
    {},
    {
      ...f.shard,
      async commitPublish(...args) {
        if (!isChanged) await f.api.patch(`/v1/subscriptions/${f.ids[0]}`, { filter: 'payload.total == "x"' });
        isChanged = true;
        return f.shard.commitPublish(...args);
      },
    },
  );
  expect(accepted).toMatchObject({ deliveryCount: 1, skippedCount: 0 });
  expect((await f.readSubscription(0)).filter_failed_at).toBeNull();
});

test("a payload that is not JSON has no fields: what asks for them does not match, what asks the event does", async () => {
  const f = await createFiltered(["payload.total > 10", "!has(payload.total)", 'event.content_type == "text/csv"']);
  const { body } = await f.api.request("/v1/events/raw?type=order.created&source=orders", {
    method: "POST",
    headers: { "Content-Type": "text/csv" },
    body: "total\n11\n",
  });
  expect(body.deliveries.map((delivery: any) => delivery.subscription_id).toSorted()).toEqual(
    [f.ids[1], f.ids[2]].toSorted(),
  );
  expect(body.skipped).toEqual([]);
});

test("of two subscriptions of one endpoint the oldest whose filter the event passes is carried", async () => {
  const f = await createFiltered(["payload.total > 10"]);
  const endpoint_id = f.subscriptions[0]!.endpointId;
  const second = await f.api.post("/v1/subscriptions", {
    endpoint_id,
    event_type_pattern: "*",
    filter: "payload.n == 1",
  });
  expect(owedTo(await f.publish({ total: 11, n: 1 }))).toEqual([f.ids[0]]);
  expect(owedTo(await f.publish({ total: 1, n: 1 }))).toEqual([second.body.id]);
  const failed = await f.publish({ total: "x", n: 1 });
  expect(owedTo(failed)).toEqual([second.body.id]);
  expect(failed.skipped).toEqual([{ subscriptionId: f.ids[0], reason: "type_mismatch" }]);
});

test("a filter that was stored and does not compile (any more) skips its subscription, and sinks nobody", async () => {
  const f = await createFiltered(["payload.total > 10", null]);
  await f.db.batch([
    f.db
      .prepare("update subscription set filter = 'payload.(' where tenant_id = ? and id = ?")
      .bind(f.tenant.id, f.ids[0]),
    f.db.prepare("update tenant set revision = revision + 1 where id = ?").bind(f.tenant.id),
  ]);
  const accepted = await f.publish({ total: 11 });
  expect(owedTo(accepted)).toEqual([f.ids[1]]);
  expect(accepted.skipped).toEqual([{ subscriptionId: f.ids[0], reason: "invalid_filter" }]);
});

test("operational events are filtered like any other", async () => {
  const f = await createFiltered([null]);
  const deps = { ...f.shard };
  const { authorizePublisher } = await import("../../../src/app/publish/publish-config.ts");
  const { publishEvents } = await import("../../../src/app/publish/publish-events.ts");
  const endpoint_id = f.subscriptions[0]!.endpointId;
  const event_type_pattern = "hooklane.endpoint.disabled";
  const filter = 'payload.reason == "gone"';
  const made = await f.api.post("/v1/subscriptions", { endpoint_id, event_type_pattern, filter });
  const publisher = await authorizePublisher(deps, { tenantId: f.tenant.id, isRelay: true });
  const item = (payload: string) => ({
    fields: { type: event_type_pattern },
    payload: new TextEncoder().encode(payload),
    payloadIsJson: true,
    contentType: "application/json",
    contentEncoding: null,
  });
  await publish(deps, f.tenant, { type: "warm.up", source: "orders" });
  // The relay's own source is a row once it has published; here nothing is to be stored.
  const seen: unknown[] = [];
  await publishEvents(
    { ...deps, commitPublish: async (...args) => (seen.push(args[3]), { stale: false, holders: [] }) },
    publisher,
    [item('{"reason":"gone"}'), item('{"reason":"failing"}')],
    null,
  );
  expect(seen).toEqual([[expect.objectContaining({ subscriptionId: made.body.id })]]);
});
