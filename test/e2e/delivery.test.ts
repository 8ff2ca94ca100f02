import { createHash } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  createEndpoint,
  createTenant,
  eventually,
  expectStatus,
  listAll,
  publish,
  terminalDelivery,
} from "./support/client.ts";
import { fetchApi } from "./support/conformance.ts";
import { withReceiver } from "./support/receiver.ts";
import { startRelayProcess, type RelayProcess } from "./support/relay-process.ts";
import { isSignedBy, verifyJson } from "./support/signature.ts";

let relay: RelayProcess;
beforeAll(async () => {
  relay = await startRelayProcess();
});
afterAll(() => relay.stop());

test("500 events to 5 endpoints arrive once each, and every attempt is on record", () =>
  withReceiver(async (receiver) => {
    receiver.handle(({ n }, response) => {
      response.setHeader("X-Request-Id", `receipt-${n}`);
      response.end(`receipt ${n}`);
    });
    const tenant = await createTenant(relay.url);
    const paths = ["/a", "/b", "/c", "/d", "/e"];
    const endpoints = new Map<string, { id: string; secret: string }>();
    for (const path of paths) endpoints.set(path, await createEndpoint(tenant, { url: receiver.url + path }));

    const batches = Array.from({ length: 5 }, (_, b) => ({
      events: Array.from({ length: 100 }, (_, i) => ({
        type: "order.created",
        source: "orders",
        payload: { number: b * 100 + i },
      })),
    }));
    const answers = await Promise.all(
      batches.map((batch) => expectStatus(202, tenant.admin.post("/v1/events/batch", batch))),
    );
    const eventIds: string[] = answers.flatMap(({ results }) => results.map(({ id }: { id: string }) => id));
    expect(new Set(eventIds).size).toBe(500);

    await receiver.waitFor(2_500);
    const deliveries = await eventually(async () => {
      const all = await listAll(tenant, "/v1/deliveries");
      return all.length === 2_500 && all.every(({ terminal_at }) => terminal_at !== null) && all;
    });
    // Everything has ended, so no further request can come.
    expect(receiver.received).toHaveLength(2_500);
    expect(deliveries.filter(({ status, attempt_count }) => status !== "succeeded" || attempt_count !== 1)).toEqual([]);

    const expectedPairs = eventIds.flatMap((event) => [...endpoints.values()].map(({ id }) => `${event} ${id}`));
    expect(deliveries.map(({ event_id, endpoint_id }) => `${event_id} ${endpoint_id}`).toSorted()).toEqual(
      expectedPairs.toSorted(),
    );
    const deliveryById = new Map(deliveries.map((delivery) => [delivery.id, delivery]));
    expect(new Set(receiver.received.map(({ headers }) => headers["x-webhook-delivery-id"])).size).toBe(2_500);
    for (const request of receiver.received) {
      const endpoint = endpoints.get(request.path)!;
      const delivery = deliveryById.get(request.headers["x-webhook-delivery-id"]);
      expect(delivery).toMatchObject({ endpoint_id: endpoint.id, event_id: request.headers["x-webhook-event-id"] });
      expect(verifyJson(endpoint.secret, request)).toMatchObject({ id: delivery.event_id });
    }

    const requests = [...receiver.received];
    while (requests.length > 0) {
      await Promise.all(
        requests.splice(0, 50).map(async ({ n, headers }) => {
          const id = headers["x-webhook-delivery-id"];
          const { data } = await expectStatus(200, tenant.admin.get(`/v1/deliveries/${id}/attempts`));
          expect(data).toEqual([
            expect.objectContaining({
              id: `${id}:1`,
              delivery_id: id,
              attempt_number: 1,
              status_code: 200,
              outcome_class: "success",
              error_class: null,
              partner_request_id: `receipt-${n}`,
              response_body_sha256: createHash("sha256").update(`receipt ${n}`).digest("hex"),
            }),
          ]);
        }),
      );
    }
  }));

test("a request carries every header of the contract, and the attempt's record agrees with it", () =>
  withReceiver(async (receiver) => {
    const tenant = await createTenant(relay.url);
    const endpoint = await createEndpoint(tenant, { url: receiver.url });
    const cause = await publish(tenant, { type: "cart.closed" });
    const [first] = await receiver.waitFor(1);
    for (const absent of ["x-webhook-cause-event-id", "x-webhook-ordering-key"]) {
      expect(first!.headers).not.toHaveProperty(absent);
    }

    const event = await publish(tenant, {
      type: "order.paid",
      occurred_at: "2026-01-31T14:00:00.5+02:00",
      schema_version: 3,
      ordering_key: "customer:42",
      cause_event_id: cause.id,
    });
    const [, request] = await receiver.waitFor(2);
    const delivery = await terminalDelivery(tenant, event.deliveries[0].id);
    const [attempt] = delivery.attempts;
    expect(request!.headers).toMatchObject({
      "content-type": "application/json",
      "user-agent": expect.stringMatching(/^Hooklane\/\d+\.\d+\.\d+$/),
      "webhook-id": delivery.idempotency_key,
      "webhook-timestamp": String(Math.floor(Date.parse(attempt.requested_at) / 1000)),
      "x-webhook-source": "orders",
      "x-webhook-event-id": event.id,
      "x-webhook-event-type": "order.paid",
      "x-webhook-schema-version": "3",
      "x-webhook-delivery-id": delivery.id,
      "x-webhook-attempt": "1",
      "x-webhook-occurred-at": "2026-01-31T12:00:00.500Z",
      "x-webhook-relayed-at": event.relayed_at,
      "x-webhook-attempt-started-at": attempt.requested_at,
      "x-webhook-cause-event-id": cause.id,
      "x-webhook-ordering-key": "customer:42",
    });
    expect(isSignedBy(endpoint.secret, request!)).toBe(true);
    expect(JSON.parse(request!.body.toString())).toEqual({
      id: event.id,
      type: "order.paid",
      source: "orders",
      occurred_at: "2026-01-31T12:00:00.500Z",
      relayed_at: event.relayed_at,
      schema_version: 3,
      ordering_key: "customer:42",
      cause_event_id: cause.id,
      payload: { id: 1 },
    });

    const { data: secrets } = await expectStatus(200, tenant.admin.get(`/v1/endpoints/${endpoint.id}/secrets`));
    expect(attempt).toMatchObject({
      endpoint_revision: 1,
      signing_secret_ids: secrets.map(({ id }: { id: string }) => id),
      relay_region: "local",
      worker_id: expect.stringMatching(/^.+\.[^.]{8}\.queue$/),
    });
    expect(Date.parse(attempt.responded_at) - Date.parse(attempt.requested_at)).toBe(attempt.latency_ms);
  }));

test("an event that matches nobody is stored all the same", async () => {
  const tenant = await createTenant(relay.url);
  const event = await publish(tenant);
  expect(event).toMatchObject({ duplicate: false, delivery_count: 0, deliveries: [] });
  expect(await expectStatus(200, tenant.admin.get(`/v1/events/${event.id}`))).toMatchObject({ delivery_count: 0 });
});

test("two subscriptions of one endpoint that both match make one delivery, of the older one", () =>
  withReceiver(async (receiver) => {
    const tenant = await createTenant(relay.url);
    const endpoint = await createEndpoint(tenant, { url: receiver.url }, "order.*");
    const second = { endpoint_id: endpoint.id, event_type_pattern: "*" };
    await expectStatus(201, tenant.admin.post("/v1/subscriptions", second));
    const event = await publish(tenant);
    expect(event.deliveries).toEqual([expect.objectContaining({ subscription_id: endpoint.subscriptionId })]);
    await terminalDelivery(tenant, event.deliveries[0].id);
    expect(receiver.received).toHaveLength(1);
  }));

test("an event and its payload can be read back as they were published", async () => {
  const tenant = await createTenant(relay.url);
  const payload = Buffer.from([0xef, 0xbb, 0xbf, 0x3c, 0xff, 0x00, 0x3e]);
  const query = "type=page.saved&source=orders&schema_version=2&idempotency_key=k-1&ordering_key=o-1";
  const published = await expectStatus(
    202,
    tenant.admin.post(`/v1/events/raw?${query}`, payload, { "Content-Type": "text/html" }),
  );
  const event = await expectStatus(200, tenant.admin.get(`/v1/events/${published.id}`));
  expect(event).toMatchObject({
    id: published.id,
    source_id: tenant.sourceId,
    type: "page.saved",
    schema_version: 2,
    idempotency_key: "k-1",
    ordering_key: "o-1",
    payload_size: payload.length,
    payload_sha256: createHash("sha256").update(payload).digest("hex"),
    content_type: "text/html",
    content_encoding: null,
    occurred_at: published.relayed_at,
    relayed_at: published.relayed_at,
    relay_region: "local",
    cause_event_id: null,
  });

  const response = await fetchApi(`${relay.url}/v1/events/${published.id}/payload`, {
    headers: { Authorization: `Bearer ${tenant.adminKey}` },
  });
  expect(Buffer.from(await response.arrayBuffer())).toEqual(payload);
  expect(Object.fromEntries(response.headers)).toMatchObject({
    "content-type": "text/html",
    "content-disposition": "attachment",
    "x-content-type-options": "nosniff",
    "content-security-policy": expect.stringContaining("sandbox"),
  });
});
