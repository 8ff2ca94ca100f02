import { expect, test } from "vitest";
import { Webhook } from "standardwebhooks";
import { createEndpoint, createTenant, expectStatus, listAll } from "./support/client.ts";
import { act, numberOf, publishNumbered, readDelivery, readLane } from "./support/lanes.ts";
import { withReceiver } from "./support/receiver.ts";
import { sharedRelay } from "./support/relay-process.ts";

const relay = await sharedRelay();

test.concurrent("a test of a paused, ordered endpoint arrives at once, signed, and what waits stays where it is", () =>
  withReceiver(async (receiver) => {
    const tenant = await createTenant(relay.url);
    const endpoint = await createEndpoint(tenant, {
      url: receiver.url,
      ordering_mode: "strict",
      rate_limit_per_second: 5,
    });
    await act(tenant, endpoint.id, "pause");
    await publishNumbered(tenant, 5);
    const before = await readLane(tenant, endpoint.id);
    const attempt = await expectStatus(200, tenant.admin.post(`/v1/endpoints/${endpoint.id}/test`, {}));
    expect(receiver.received).toHaveLength(1);
    const { headers, body } = receiver.received[0]!;
    const verified = new Webhook(endpoint.secret).verify(body, headers as Record<string, string>);
    expect(verified).toMatchObject({ type: "hooklane.test", source: "hooklane", payload: { test: true } });
    expect(headers).toMatchObject({
      "x-webhook-event-type": "hooklane.test",
      "x-webhook-delivery-id": attempt.delivery_id,
      "x-webhook-attempt": "1",
    });
    expect(attempt).toMatchObject({
      status_code: 200,
      outcome_class: "success",
      signing_secret_ids: [expect.any(String)],
    });
    expect(attempt.worker_id).toMatch(/^[^.]+\.[^.]{8}\.test$/);
    expect(await readDelivery(tenant, attempt.delivery_id)).toMatchObject({ status: "succeeded", attempts: [attempt] });
    expect(await readLane(tenant, endpoint.id)).toEqual(before);

    await act(tenant, endpoint.id, "resume");
    await receiver.waitFor(6);
    expect(receiver.received.slice(1).map(numberOf)).toEqual([0, 1, 2, 3, 4]);
  }));

test.concurrent("a disabled endpoint can be tested before it is enabled, and a test that fails says how", () =>
  withReceiver(async (receiver) => {
    receiver.handle((_, response) => void response.writeHead(410, { "X-Request-Id": "r-1" }).end("no"));
    const tenant = await createTenant(relay.url);
    const endpoint = await createEndpoint(tenant, { url: receiver.url });
    await act(tenant, endpoint.id, "disable");
    const attempt = await expectStatus(200, tenant.admin.post(`/v1/endpoints/${endpoint.id}/test`));
    expect(attempt).toMatchObject({
      status_code: 410,
      outcome_class: "rejected",
      error_class: "gone",
      partner_request_id: "r-1",
    });
    await act(tenant, endpoint.id, "enable");
    await expectStatus(200, tenant.admin.post(`/v1/endpoints/${endpoint.id}/test`));
    expect((await expectStatus(200, tenant.admin.get(`/v1/endpoints/${endpoint.id}`))).state).toBe("active");
    // Nobody has subscribed to what arrived, and nobody's subscription matched it.
    const deliveries = await listAll(tenant, "/v1/deliveries");
    expect(deliveries.map(({ final_outcome, attempt_count }) => [final_outcome, attempt_count])).toEqual([
      ["gone", 1],
      ["gone", 1],
    ]);
  }));
