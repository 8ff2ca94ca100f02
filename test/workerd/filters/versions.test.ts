import { expect, test } from "vitest";
import { createTestTenant, type Api } from "../support/api.ts";

const TYPE = "invoice.paid";

async function createConsumer() {
  const { api } = await createTestTenant();
  await api.post("/v1/sources", { name: "orders" });
  const endpoint = (await api.post("/v1/endpoints", { url: "https://consumer.example/hook" })).body.id;
  const subscribe = async (fields: Record<string, unknown>, endpointId = endpoint) => {
    const body = { endpoint_id: endpointId, event_type_pattern: TYPE, ...fields };
    const made = await api.post("/v1/subscriptions", body);
    if (made.status !== 201) throw new Error(JSON.stringify(made.body));
    return made.body.id as string;
  };
  return {
    api,
    subscribe,
    otherEndpoint: async () => (await api.post("/v1/endpoints", { url: "https://b.example" })).body.id,
  };
}

/** Publishes `three` as version 3 and `four` beside it as a variant. */
async function publish(api: Api, three: unknown, four?: unknown) {
  const variants = four === undefined ? [] : [{ schema_version: 4, payload: four }];
  const event = { type: TYPE, source: "orders", schema_version: 3, payload: three, variants };
  const { status, body } = await api.post("/v1/events", event);
  expect(status).toBe(202);
  const { data } = (await api.get(`/v1/deliveries?event_id=${body.id}`)).body;
  return {
    id: body.id as string,
    skipped: body.skipped,
    owed: data.map((row: any) => [row.subscription_id, row.schema_version, row.final_outcome]).toSorted(),
  };
}

const tried = async (api: Api, subscription_id: string, event_id: string) =>
  (await api.post("/v1/subscriptions/test", { subscription_id, event_id })).body;

test("of two subscriptions of one endpoint each filter is asked of its own version, and the highest that passes is sent", async () => {
  const { api, subscribe } = await createConsumer();
  const three = await subscribe({ schema_version: 3, filter: "payload.total > 10" });
  const four = await subscribe({ schema_version: 4, filter: "payload.amount.value > 100" });
  const owed = async (total: unknown, value: unknown) => {
    const event = await publish(api, { total }, { amount: { value } });
    return { ...event, agreed: [await tried(api, three, event.id), await tried(api, four, event.id)] };
  };
  const both = await owed(101, 101);
  expect(both).toMatchObject({ owed: [[four, 4, null]], skipped: [], agreed: [{ matched: true }, { matched: true }] });
  const older = await owed(11, 11);
  expect(older).toMatchObject({
    owed: [[three, 3, null]],
    agreed: [{ matched: true }, { matched: false, reason: null }],
  });
  expect(await owed(1, 1)).toMatchObject({ owed: [], skipped: [] });
  const failing = await owed(11, "much");
  expect(failing).toMatchObject({
    owed: [[three, 3, null]],
    skipped: [{ subscription_id: four, reason: "type_mismatch" }],
    agreed: [{ matched: true }, { matched: false, skipped: true, reason: "type_mismatch" }],
  });
  const failed = (await api.get(`/v1/subscriptions/${four}`)).body;
  expect(failed).toMatchObject({ filter_failed_reason: "type_mismatch", filter_failed_event_id: failing.id });
  expect((await api.get(`/v1/subscriptions/${three}`)).body.filter_failed_at).toBeNull();
});

test("a pin and its filter change together, from the next event on", async () => {
  const { api, subscribe } = await createConsumer();
  const id = await subscribe({ schema_version: 3, filter: "payload.total > 10" });
  expect((await publish(api, { total: 11 }, { amount: 5 })).owed).toEqual([[id, 3, null]]);
  await api.patch(`/v1/subscriptions/${id}`, { schema_version: 4, filter: "payload.amount == 5" });
  expect((await publish(api, { total: 1 }, { amount: 5 })).owed).toEqual([[id, 4, null]]);
  expect((await publish(api, { total: 11 }, { amount: 6 })).owed).toEqual([]);
});

test("a version that cannot be had is on record unless the event's own payload is plainly not wanted, and flags no filter", async () => {
  const { api, subscribe } = await createConsumer();
  await api.post("/v1/event-types", { name: TYPE, schema_version: 3 });
  await api.post("/v1/event-types", { name: TYPE, schema_version: 4 });
  const id = await subscribe({ schema_version: 4, filter: "payload.amount > 10" });
  const onRecord = [[id, 4, "version_not_published"]];
  const absent = await publish(api, { total: 11 });
  expect(absent).toMatchObject({ owed: onRecord, skipped: [] });
  expect(await tried(api, id, absent.id)).toMatchObject({ matched: false, reason: "version_not_published" });
  expect(await publish(api, { amount: "much" })).toMatchObject({ owed: onRecord, skipped: [] });
  expect(await publish(api, { amount: 11 })).toMatchObject({ owed: onRecord });
  expect(await publish(api, { amount: 1 })).toMatchObject({ owed: [], skipped: [] });
  expect((await api.get(`/v1/subscriptions/${id}`)).body.filter_failed_at).toBeNull();

  await api.patch(`/v1/event-types/${TYPE}`, { schema_version: 4, retired: true, force: true });
  const retired = await publish(api, { total: 1 }, { amount: 11 });
  expect(retired.owed).toEqual([[id, 4, "version_retired"]]);
  expect(await tried(api, id, retired.id)).toMatchObject({ matched: false, reason: "version_retired" });
});

test("a type that requires a scope is not held to the filters of those who have it not", async () => {
  const { api, subscribe, otherEndpoint } = await createConsumer();
  await api.post("/v1/event-types", { name: TYPE, schema_version: 3, required_scope: "billing" });
  const without = await subscribe({ filter: 'payload.total > "a"' });
  const entitled = await subscribe(
    { filter: "payload.total > 10", entitlement_scope: "billing" },
    await otherEndpoint(),
  );
  const event = await publish(api, { total: 11 });
  expect(event).toMatchObject({ owed: [[entitled, 3, null]], skipped: [] });
  expect(await tried(api, without, event.id)).toMatchObject({ matched: false, reason: "required_scope", steps: 0 });
  expect(await tried(api, entitled, event.id)).toMatchObject({ matched: true });
});

test("a sample has the version that its subscription asks for, unless it says another", async () => {
  const { api, subscribe } = await createConsumer();
  const id = await subscribe({ schema_version: 4, filter: "event.schema_version == 4 && payload.amount > 10" });
  const answer = async (event: object) =>
    (await api.post("/v1/subscriptions/test", { subscription_id: id, event, payload: { amount: 11 } })).body;
  expect(await answer({ type: TYPE })).toMatchObject({ matched: true });
  expect(await answer({ type: TYPE, schema_version: 3 })).toMatchObject({ reason: "version_not_published" });
});
