import { env } from "cloudflare:workers";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { splitPayloadRef } from "../../../src/core/payload-ref.ts";
import { shardsOf } from "../../../src/compose.ts";
import { createTestTenant, type Api } from "../support/api.ts";
import { countingEnv, createCost } from "../support/counting.ts";
import { attempt, createTestContext, deliverDeps, publish, shardDeps } from "../support/worker.ts";

/** What has been sent, by the delivery's id. */
const sent = new Map<string, { version: string; body: string }>();
beforeEach(() => {
  sent.clear();
  vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
    const request = new Request(input as Request, init);
    const headers = request.headers;
    sent.set(headers.get("X-Webhook-Delivery-Id")!, {
      version: headers.get("X-Webhook-Schema-Version")!,
      body: await request.text(),
    });
    return new Response("ok");
  });
});
afterEach(() => vi.restoreAllMocks());

/** Bytes that a parser would not give back. */
const V3 = '{ "total" : 9007199254740993, "currency":"\\u00e9" }';
const V4 = '{"amount":{"value":1.0,"of":"9007199254740993"}}';
const V5 = "5.000";

async function createProducer() {
  const tenant = await createTestTenant();
  const { api } = tenant;
  await api.post("/v1/sources", { name: "orders" });
  const context = createTestContext();
  const subscribe = async (fields: Record<string, unknown>, endpointId?: string) => {
    const endpoint = endpointId ?? (await api.post("/v1/endpoints", { url: "https://consumer.example/hook" })).body.id;
    const made = await api.post("/v1/subscriptions", {
      endpoint_id: endpoint,
      event_type_pattern: "order.created",
      ...fields,
    });
    if (made.status !== 201) throw new Error(JSON.stringify(made.body));
    return made.body as { id: string; endpoint_id: string; schema_version: number | null };
  };
  return {
    tenant,
    api,
    context,
    db: shardsOf(env as Env).get(tenant.shard)!,
    subscribe,
    register: (schema_version: number) => api.post("/v1/event-types", { name: "order.created", schema_version }),
    retire: (schema_version: number, force = false) =>
      api.patch("/v1/event-types/order.created", { schema_version, retired: true, force }),
    /** As written, by the route that a producer uses. */
    publish: async (text: string) => api.request("/v1/events", { method: "POST", body: text }),
    /** Makes the first attempt of each delivery of an event, and gives back what each endpoint got. */
    async deliverAll(event: any) {
      const deps = deliverDeps(tenant, context);
      for (const { id, status } of event.deliveries) {
        if (status === "failed") continue;
        await attempt(deps, context, { tenantId: tenant.id, deliveryId: id, attemptNumber: 1 });
      }
      const read = await Promise.all(event.deliveries.map(({ id }: { id: string }) => readDelivery(api, id)));
      return new Map(
        read.map((delivery) => [delivery.endpoint_id as string, { ...delivery, sent: sent.get(delivery.id) }]),
      );
    },
  };
}

const readDelivery = async (api: Api, id: string) => (await api.get(`/v1/deliveries/${id}`)).body;
const eventText = (members: string) => `{"type":"order.created","source":"orders",${members}}`;
const THREE_VERSIONS = eventText(
  `"schema_version":4,"payload":${V4},"variants":[{"schema_version":5,"payload":${V5}},{"payload":${V3},"schema_version":3}]`,
);

test("each endpoint gets one delivery with the bytes of its pin, and says which version it is", async () => {
  const producer = await createProducer();
  const pinned = await Promise.all([3, 4, 5].map((schema_version) => producer.subscribe({ schema_version })));
  const newest = await producer.subscribe({ schema_version: null });
  const wildcard = await producer.subscribe({ event_type_pattern: "order.*" });
  const { status, body: event } = await producer.publish(THREE_VERSIONS);
  expect(status).toBe(202);
  expect(event.delivery_count).toBe(5);
  const got = await producer.deliverAll(event);
  for (const [subscription, version, bytes] of [
    [pinned[0]!, 3, V3],
    [pinned[1]!, 4, V4],
    [pinned[2]!, 5, V5],
    [newest, 5, V5],
    [wildcard, 5, V5],
  ] as const) {
    const delivery = got.get(subscription.endpoint_id)!;
    expect(delivery).toMatchObject({ status: "succeeded", schema_version: version, subscription_id: subscription.id });
    expect(delivery.sent.version).toBe(String(version));
    expect(delivery.sent.body).toContain(`"schema_version":${version},`);
    expect(delivery.sent.body.endsWith(`,"payload":${bytes}}`)).toBe(true);
  }
});

test("all versions of an event are one object, shown with their sizes and hashes, and read by their number", async () => {
  const producer = await createProducer();
  const { body: event } = await producer.publish(THREE_VERSIONS);
  const { body: read } = await producer.api.get(`/v1/events/${event.id}`);
  const size = (text: string) => new TextEncoder().encode(text).length;
  expect(read).toMatchObject({ schema_version: 4, payload_size: size(V4) });
  expect(read.variants).toEqual([
    { schema_version: 3, payload_size: size(V3), payload_sha256: expect.stringMatching(/^[0-9a-f]{64}$/) },
    { schema_version: 5, payload_size: size(V5), payload_sha256: expect.stringMatching(/^[0-9a-f]{64}$/) },
  ]);
  const [key] = splitPayloadRef(read.payload_ref);
  const object = await (env as Env).PAYLOADS.get(key);
  expect(await object!.text()).toBe(V4 + V3 + V5);
  const payload = async (query: string) => (await producer.api.get(`/v1/events/${event.id}/payload${query}`)).body;
  expect(await payload("")).toEqual(JSON.parse(V4));
  expect(await payload("?schema_version=3")).toEqual(JSON.parse(V3));
  expect(await payload("?schema_version=4")).toEqual(JSON.parse(V4));
  expect(await payload("?schema_version=2")).toMatchObject({ status: 404, code: "not_found" });
  for (const wrong of ["schema_version=0", "schema_version=x", "version=3"]) {
    expect(await payload(`?${wrong}`)).toMatchObject({ status: 422, errors: [{ path: wrong.split("=")[0] }] });
  }
});

test("variants cost a publish no row, no trip and no object more", async () => {
  const producer = await createProducer();
  await producer.subscribe({ schema_version: 3 });
  const costOf = async (versions: number[]) => {
    const cost = createCost();
    const { tenant } = producer;
    const deps = () => shardDeps(tenant, createTestContext(), countingEnv(env as Env, cost));
    const fields = { type: "order.created", source: "orders", schema_version: 3 };
    await publish(shardDeps(tenant, createTestContext()), tenant, fields);
    await publish(deps(), tenant, fields, '{"n":1}', versions);
    return cost;
  };
  expect(await costOf([1, 2, 4])).toEqual(await costOf([]));
});

test("a batch holds events with variants beside others, each with its own bytes", async () => {
  const producer = await createProducer();
  const pinned = await producer.subscribe({ schema_version: 3 });
  const events = [
    THREE_VERSIONS,
    eventText(`"schema_version":3,"payload":33`),
    eventText(`"payload":1`),
    THREE_VERSIONS,
  ];
  const { body } = await producer.api.request("/v1/events/batch", {
    method: "POST",
    body: `{"events":[${events.join(",")}]}`,
  });
  const bodies: string[] = [];
  for (const event of body.results) {
    const delivery = (await producer.deliverAll(event)).get(pinned.endpoint_id)!;
    bodies.push(delivery.sent ? delivery.sent.body.split('"payload":')[1] : delivery.final_outcome);
  }
  expect(bodies).toEqual([`${V3}}`, "33}", "version_not_published", `${V3}}`]);
});

test("the same key with the same variants, in any order, is a duplicate; with others it is a reused key", async () => {
  const producer = await createProducer();
  await producer.subscribe({ schema_version: 9 });
  const keyed = (variants: string) =>
    producer.publish(eventText(`"idempotency_key":"k","schema_version":3,"payload":3,"variants":[${variants}]`));
  const four = '{"schema_version":4,"payload":4}';
  const five = '{"schema_version":5,"payload":5}';
  const first = await keyed(`${four},${five}`);
  expect(first).toMatchObject({ status: 202, body: { deliveries: [{ status: "failed" }] } });
  // The answer of a duplicate is the first one's, born failed and all.
  expect(await keyed(`${five},${four}`)).toMatchObject({ status: 200, body: { ...first.body, duplicate: true } });
  for (const others of [
    four,
    "",
    `${four},${five.replace('"payload":5', '"payload": 6')}`,
    `${four},${five.replace("5,", "6,")}`,
  ]) {
    expect(await keyed(others)).toMatchObject({ status: 422, body: { code: "idempotency_key_reused" } });
  }
});

test("erasing an event erases all of its versions and none of its neighbours", async () => {
  const producer = await createProducer();
  const pinned = await producer.subscribe({ schema_version: 5 });
  const batch = `{"events":[${eventText('"payload":"before"')},${THREE_VERSIONS},${eventText('"payload":"after"')}]}`;
  const { body } = await producer.api.request("/v1/events/batch", { method: "POST", body: batch });
  const { id } = body.results[1];
  expect((await producer.api.delete(`/v1/events/${id}/payload`)).status).toBe(204);
  const { body: read } = await producer.api.get(`/v1/events/${id}`);
  const object = await (env as Env).PAYLOADS.get(splitPayloadRef(read.payload_ref)[0]);
  expect(await object!.text()).toBe(`"before"${"\0".repeat((V4 + V3 + V5).length)}"after"`);
  for (const query of ["", "?schema_version=3", "?schema_version=5"]) {
    expect((await producer.api.get(`/v1/events/${id}/payload${query}`)).status).toBe(404);
  }
  const [delivery] = body.results[1].deliveries;
  expect(await readDelivery(producer.api, delivery.id)).toMatchObject({ final_outcome: "payload_missing" });
  expect(delivery.endpoint_id).toBe(pinned.endpoint_id);
});

test("the bytes of a duplicate's variants do not stay beside those of others", async () => {
  const producer = await createProducer();
  const { tenant, context } = producer;
  const deps = shardDeps(tenant, context);
  const fields = { type: "order.created", source: "orders" };
  await publish(deps, tenant, { ...fields, idempotency_key: "k" }, '"own"', [2]);
  const batch = [
    eventText('"idempotency_key":"k","payload":"own","variants":[{"schema_version":2,"payload":"own"}]'),
    eventText('"payload":"other"'),
  ];
  const { body } = await producer.api.request("/v1/events/batch", {
    method: "POST",
    body: `{"events":[${batch.join(",")}]}`,
  });
  expect(body.results.map(({ status }: { status: number }) => status)).toEqual([200, 202]);
  const { body: read } = await producer.api.get(`/v1/events/${body.results[1].id}`);
  const [key] = splitPayloadRef(read.payload_ref);
  await expect
    .poll(async () => (await (await (env as Env).PAYLOADS.get(key))!.text()).replaceAll("\0", "."))
    .toBe('.........."other"'.replace(/^\.+/, ".".repeat('"own""own"'.length)));
});

test("what is not carried, or is retired, is on record as failed, and nobody is sent it", async () => {
  const producer = await createProducer();
  await producer.register(3);
  await producer.register(4);
  const [three, four, five, newest] = [
    await producer.subscribe({ schema_version: 3 }),
    await producer.subscribe({ schema_version: 4 }),
    await producer.subscribe({ schema_version: 5 }),
    await producer.subscribe({ schema_version: null }),
  ];
  const both = eventText('"schema_version":3,"payload":3,"variants":[{"schema_version":4,"payload":4}]');
  const outcomes = async (text: string) => {
    const { body: event } = await producer.publish(text);
    const got = await producer.deliverAll(event);
    return [three, four, five, newest].map(({ endpoint_id }) => {
      const { final_outcome, schema_version, attempts, sent: request } = got.get(endpoint_id)!;
      expect(attempts).toHaveLength(final_outcome === "delivered" ? 1 : 0);
      expect(request?.version).toBe(final_outcome === "delivered" ? String(schema_version) : undefined);
      return `${final_outcome} ${schema_version}`;
    });
  };
  expect(await outcomes(both)).toEqual(["delivered 3", "delivered 4", "version_not_published 5", "delivered 4"]);
  expect(await outcomes(eventText('"schema_version":3,"payload":3'))).toEqual([
    "delivered 3",
    "version_not_published 4",
    "version_not_published 5",
    "delivered 3",
  ]);
  expect((await producer.retire(4, true)).status).toBe(200);
  expect(await outcomes(both)).toEqual(["delivered 3", "version_retired 4", "version_not_published 5", "delivered 3"]);
  expect((await producer.retire(3, true)).status).toBe(200);
  expect(await outcomes(both)).toEqual([
    "version_retired 3",
    "version_retired 4",
    "version_not_published 5",
    "version_retired 4",
  ]);
});

test("of two subscriptions of one endpoint the higher version that the event carries is sent, once", async () => {
  const producer = await createProducer();
  const three = await producer.subscribe({ schema_version: 3 });
  const four = await producer.subscribe({ schema_version: 4 }, three.endpoint_id);
  for (const [text, version, subscription] of [
    [eventText('"schema_version":3,"payload":3'), 3, three],
    [eventText('"schema_version":4,"payload":4'), 4, four],
    [eventText('"schema_version":3,"payload":3,"variants":[{"schema_version":4,"payload":4}]'), 4, four],
    [eventText('"schema_version":5,"payload":5'), 3, three],
  ] as const) {
    const { body: event } = await producer.publish(text);
    expect(event.delivery_count).toBe(1);
    const delivery = (await producer.deliverAll(event)).get(three.endpoint_id)!;
    expect(delivery).toMatchObject({ schema_version: version, subscription_id: subscription.id });
  }
});

test("a replay carries what the subscription asks for now; what cannot be had is 409, and makes nothing", async () => {
  const producer = await createProducer();
  await producer.register(3);
  await producer.register(4);
  const subscription = await producer.subscribe({ schema_version: 3 });
  const { body: event } = await producer.publish(
    eventText('"schema_version":3,"payload":3,"variants":[{"schema_version":4,"payload":4}]'),
  );
  const [{ id }] = event.deliveries;
  await producer.deliverAll(event);
  const replay = () => producer.api.post(`/v1/deliveries/${id}/replay`);
  const pin = (schema_version: number | null) =>
    producer.api.patch(`/v1/subscriptions/${subscription.id}`, { schema_version });
  const replayed = async () => {
    const { body } = await replay();
    expect(body).toMatchObject({ idempotency_key: expect.stringMatching(/^msg_/), replay_of: id });
    const call = { tenantId: producer.tenant.id, deliveryId: body.id, attemptNumber: 1 };
    await attempt(deliverDeps(producer.tenant, producer.context), producer.context, call);
    expect(sent.get(body.id)!.body.endsWith(`"payload":${body.schema_version}}`)).toBe(true);
    return body.schema_version;
  };
  expect(await replayed()).toBe(3);
  await pin(4);
  expect(await replayed()).toBe(4);
  await pin(null);
  expect(await replayed()).toBe(4);
  await producer.retire(4);
  expect(await replayed()).toBe(3);
  await pin(5);
  expect(await replay()).toMatchObject({ status: 409, body: { code: "version_not_published" } });
  await pin(3);
  await producer.retire(3, true);
  expect(await replay()).toMatchObject({ status: 409, body: { code: "version_retired" } });
  const { body: all } = await producer.api.get(`/v1/deliveries?event_id=${event.id}`);
  expect(all.data).toHaveLength(5);
});

test("deliveries and open parts from before there were versions carry their event's own", async () => {
  const producer = await createProducer();
  const pinned = await producer.subscribe({ schema_version: 7 });
  const { body: event } = await producer.publish(eventText('"schema_version":7,"payload":7'));
  await producer.db.prepare("update delivery set schema_version = null where event_id = ?").bind(event.id).run();
  const delivery = (await producer.deliverAll(event)).get(pinned.endpoint_id)!;
  expect(delivery).toMatchObject({ schema_version: 7, status: "succeeded" });
  expect(delivery.sent).toMatchObject({ version: "7" });
});

test.each([
  ['"variants":{}', "variants"],
  ['"variants":[7]', "variants.0"],
  ['"variants":[{"schema_version":2}]', "variants.0.payload"],
  ['"variants":[{"payload":1}]', "variants.0.schema_version"],
  ['"variants":[{"schema_version":1,"payload":1}]', "variants.0.schema_version"],
  ['"variants":[{"schema_version":2,"payload":1,"type":"a"}]', "variants.0.type"],
])("%s is refused by its place, and stores nothing", async (members, path) => {
  const producer = await createProducer();
  const answer = await producer.publish(eventText(`"payload":1,${members}`));
  expect(answer).toMatchObject({ status: 422, body: { code: "validation_failed", errors: [{ path }] } });
  expect((await producer.api.get("/v1/events")).body.data).toEqual([]);
});

test("each version may be as large as a payload, also together, and a raw publish has one", async () => {
  const producer = await createProducer();
  const large = (bytes: number) => JSON.stringify("x".repeat(bytes - 2));
  const event = (bytes: number) =>
    eventText(
      `"payload":${large(262_144)},"variants":[${[2, 3, 4, 5].map((version) => `{"schema_version":${version},"payload":${large(bytes)}}`).join(",")}]`,
    );
  expect((await producer.publish(event(262_144))).status).toBe(202);
  expect(await producer.publish(event(262_145))).toMatchObject({ status: 413, body: { code: "payload_too_large" } });
  expect((await producer.publish(eventText(`"payload":${large(262_145)}`))).status).toBe(413);
  const raw = "/v1/events/raw?type=order.created&source=orders&variants=1";
  expect(await producer.api.request(raw, { method: "POST", body: "1" })).toMatchObject({
    status: 422,
    body: { errors: [{ path: "variants" }] },
  });
});
