import { afterAll, beforeAll, expect, test } from "vitest";
import { Webhook } from "standardwebhooks";
import { createEndpoint, createTenant, expectStatus, listAll, terminalDelivery } from "./support/client.ts";
import { act, numberOf, publishNumbered, readDelivery, readLane } from "./support/lanes.ts";
import { withReceiver, type Received } from "./support/receiver.ts";
import { startRelayProcess, type RelayProcess } from "./support/relay-process.ts";

let relay: RelayProcess;
beforeAll(async () => {
  relay = await startRelayProcess();
});
afterAll(() => relay.stop());

const isTest = ({ headers }: Received) => headers["x-webhook-event-type"] === "hooklane.test";

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

test.concurrent("while a test hangs, deliveries in order go on; when its relay is killed, it ends and is not made again", () =>
  withReceiver(async (receiver) => {
    receiver.handle((request, response) => void (isTest(request) ? null : response.end()));
    const own = await startRelayProcess();
    const tenant = await createTenant(own.url);
    const settings = { url: receiver.url, ordering_mode: "strict", on_exhausted: "block", timeout_ms: 8_000 };
    const endpoint = await createEndpoint(tenant, settings);
    const testing = tenant.admin.post(`/v1/endpoints/${endpoint.id}/test`).catch(() => null);
    await receiver.waitFor(1);
    const ids = await publishNumbered(tenant, 3);
    for (const id of ids) expect(await terminalDelivery(tenant, id)).toMatchObject({ status: "succeeded" });
    const [underWay] = await listAll(tenant, "/v1/deliveries?event_type=hooklane.test");
    expect(underWay).toMatchObject({ status: "processing", attempt_count: 1 });
    await own.kill();
    await testing;

    const again = await startRelayProcess({ stateDir: own.stateDir, port: Number(new URL(own.url).port) });
    expect(await terminalDelivery(tenant, underWay.id, 110_000)).toMatchObject({
      status: "dead_letter",
      final_outcome: "abandoned",
      attempts: [{ error_class: "abandoned" }],
    });
    const [last] = await publishNumbered(tenant, 1, { from: 3 });
    expect(await terminalDelivery(tenant, last!)).toMatchObject({ status: "succeeded" });
    expect(receiver.received.filter(isTest)).toHaveLength(1);
    await again.stop();
  }));
