import { describe, expect, test } from "vitest";
import { createEndpoint, createTenant, expectStatus, listAll, publish, terminalDelivery } from "./support/client.ts";
import { fetchApi } from "./support/conformance.ts";
import { withReceiver } from "./support/receiver.ts";
import { createStateDir, startRelayProcess, sharedRelay } from "./support/relay-process.ts";

const relay = await sharedRelay();

const ORDER = { type: "order.created", source: "orders", payload: { id: 1 }, idempotency_key: "order-1" };

test("50 parallel publishes of one key make one event, one request, one 202 and 49 duplicates of its answer", () =>
  withReceiver(async (receiver) => {
    const tenant = await createTenant(relay.url);
    await createEndpoint(tenant, { url: receiver.url });
    const answers = await Promise.all(Array.from({ length: 50 }, () => tenant.admin.post("/v1/events", ORDER)));

    const first = answers.filter(({ status }) => status === 202);
    expect(first).toHaveLength(1);
    expect(first[0]!.body).toMatchObject({ duplicate: false, delivery_count: 1 });
    const duplicates = answers.filter(({ status }) => status === 200);
    expect(duplicates).toHaveLength(49);
    for (const { body } of duplicates) expect(body).toEqual({ ...first[0]!.body, duplicate: true });

    await terminalDelivery(tenant, first[0]!.body.deliveries[0].id);
    expect(await listAll(tenant, "/v1/events")).toHaveLength(1);
    expect(await listAll(tenant, "/v1/deliveries")).toHaveLength(1);
    expect(receiver.received).toHaveLength(1);
    // The answer stays the first one after what it speaks of has been delivered.
    const later = await expectStatus(200, tenant.admin.post("/v1/events", ORDER));
    expect(later).toEqual({ ...first[0]!.body, duplicate: true });
  }));

describe("a key that is held", () => {
  test.each([
    ["another payload", { payload: { id: 2 } }],
    ["another type", { type: "order.paid" }],
    ["another schema_version", { schema_version: 2 }],
    ["another ordering_key", { ordering_key: "o" }],
  ])("is refused with %s, and nothing is stored", async (_, changes) => {
    const tenant = await createTenant(relay.url);
    const first = await publish(tenant, ORDER);
    const problem = await expectStatus(422, tenant.admin.post("/v1/events", { ...ORDER, ...changes }));
    expect(problem).toMatchObject({ code: "idempotency_key_reused", detail: expect.stringContaining(first.id) });
    expect(await listAll(tenant, "/v1/events")).toHaveLength(1);
  });

  test("is refused with a payload that differs in its bytes only", async () => {
    const tenant = await createTenant(relay.url);
    const body = (payload: string) => `{"type":"t","source":"orders","idempotency_key":"k","payload":${payload}}`;
    await expectStatus(202, tenant.admin.post("/v1/events", body('{"a":1}')));
    await expectStatus(422, tenant.admin.post("/v1/events", body('{"a": 1}')));
    await expectStatus(200, tenant.admin.post("/v1/events", body('{"a":1}')));
  });

  test("is a duplicate whatever its occurred_at, and whichever route it comes by", async () => {
    const tenant = await createTenant(relay.url);
    const first = await publish(tenant, ORDER);
    const again = [
      tenant.admin.post("/v1/events", { ...ORDER, occurred_at: "2020-01-01T00:00:00Z" }),
      tenant.admin.post("/v1/events/raw?type=order.created&source=orders&idempotency_key=order-1", '{"id":1}'),
    ];
    for (const answer of again) expect(await expectStatus(200, answer)).toEqual({ ...first, duplicate: true });
    const batch = await expectStatus(202, tenant.admin.post("/v1/events/batch", { events: [ORDER] }));
    expect(batch.results).toEqual([{ ...first, duplicate: true, status: 200 }]);
  });

  test("is free for another source and for another tenant", async () => {
    const [tenant, other] = await Promise.all([createTenant(relay.url), createTenant(relay.url)]);
    await expectStatus(201, tenant.admin.post("/v1/sources", { name: "carts" }));
    const events = [
      await publish(tenant, ORDER),
      await publish(tenant, { ...ORDER, source: "carts" }),
      await publish(other, ORDER),
    ];
    expect(new Set(events.map(({ id }) => id)).size).toBe(3);
    // Each of them is held by its own source from now on.
    await expectStatus(200, tenant.admin.post("/v1/events", { ...ORDER, source: "carts" }));
  });
});

describe("the header Idempotency-Key", () => {
  test.each([
    ["bare", "order-1"],
    ["quoted", '"order-1"'],
  ])("%s means the same as the field", async (_, header) => {
    const tenant = await createTenant(relay.url);
    const first = await publish(tenant, ORDER);
    const { idempotency_key: _key, ...withoutField } = ORDER;
    const headers = { "Idempotency-Key": header };
    const duplicate = { ...first, duplicate: true };
    expect(await expectStatus(200, tenant.admin.post("/v1/events", withoutField, headers))).toEqual(duplicate);
    expect(await expectStatus(200, tenant.admin.post("/v1/events", ORDER, headers))).toEqual(duplicate);
    const raw = tenant.admin.post("/v1/events/raw?type=order.created&source=orders", '{"id":1}', headers);
    expect(await expectStatus(200, raw)).toEqual(duplicate);
  });

  test("that differs from the field, or stands over a batch, is refused", async () => {
    const tenant = await createTenant(relay.url);
    const headers = { "Idempotency-Key": "order-2" };
    const refused = [
      tenant.admin.post("/v1/events", ORDER, headers),
      tenant.admin.post("/v1/events/batch", { events: [ORDER] }, headers),
    ];
    for (const answer of refused) expect(await expectStatus(422, answer)).toMatchObject({ code: "validation_failed" });
    expect(await listAll(tenant, "/v1/events")).toEqual([]);
  });
});

test("a key survives a restart on the same state", () =>
  withReceiver(async (receiver) => {
    const stateDir = createStateDir();
    const before = await startRelayProcess({ stateDir });
    const tenant = await createTenant(before.url);
    await createEndpoint(tenant, { url: receiver.url });
    const first = await publish(tenant, ORDER);
    await terminalDelivery(tenant, first.deliveries[0].id);
    expect(await before.stop()).toBe(0);

    const after = await startRelayProcess({ stateDir });
    try {
      const post = async (body: unknown) => {
        const headers = { Authorization: `Bearer ${tenant.adminKey}`, "Content-Type": "application/json" };
        const response = await fetchApi(`${after.url}/v1/events`, {
          method: "POST",
          headers,
          body: JSON.stringify(body),
        });
        return { status: response.status, body: await response.json() };
      };
      expect(await post(ORDER)).toEqual({ status: 200, body: { ...first, duplicate: true } });
      expect(await post({ ...ORDER, payload: 2 })).toMatchObject({ status: 422 });
      const next = await post({ ...ORDER, idempotency_key: "order-2" });
      expect(next).toMatchObject({ status: 202 });
      const requests = await receiver.waitFor(2);
      expect(requests.map(({ headers }) => headers["x-webhook-event-id"])).toEqual([first.id, next.body.id]);
    } finally {
      await after.stop();
    }
  }));
