import { afterAll, expect, test } from "vitest";
import {
  createEndpoint,
  createTenant,
  deliveryWhen,
  expectStatus,
  publish,
  terminalDelivery,
} from "./support/client.ts";
import { withReceiver } from "./support/receiver.ts";
import { startRelayProcess, sharedRelay } from "./support/relay-process.ts";
import { verifyJson } from "./support/signature.ts";

const SECRET = "Bearer swordfish-4711";

const relay = await sharedRelay();
afterAll(() => {
  // Whatever the tests of this file did.
  expect(relay.printed()).not.toContain("swordfish");
});

const QUICK_RETRY = { delays_seconds: [0.2], jitter: 0 };

test.each([{ ordering_mode: "unordered" }, { ordering_mode: "strict" }])(
  "an endpoint's headers go out with each attempt, beside those of the relay (%j)",
  (route) =>
    withReceiver(async (receiver) => {
      receiver.handle(({ n }, response) => void response.writeHead(n === 1 ? 503 : 200).end());
      const tenant = await createTenant(relay.url);
      const headers = { "X-Team": "orders", Authorization: SECRET, "x-api-key": "swordfish", Accept: "a, b" };
      const { secret } = await createEndpoint(tenant, {
        url: receiver.url,
        headers,
        retry_policy: QUICK_RETRY,
        ...route,
      });
      const { deliveries } = await publish(tenant);
      const delivery = await terminalDelivery(tenant, deliveries[0].id);
      expect(delivery).toMatchObject({ status: "succeeded", attempt_count: 2 });
      expect(receiver.received).toHaveLength(2);
      for (const request of receiver.received) {
        expect(request.headers).toMatchObject({
          "x-team": "orders",
          authorization: SECRET,
          "x-api-key": "swordfish",
          accept: "a, b",
          "content-type": "application/json",
          "user-agent": expect.stringMatching(/^Hooklane\//),
          "x-webhook-hop": "1",
        });
        expect(verifyJson(secret, request)).toMatchObject({ type: "order.created" });
      }
      expect(JSON.stringify(delivery)).not.toContain("swordfish");
    }),
);

test("a replay takes the headers that the endpoint has now, and a retry too", () =>
  withReceiver(async (receiver) => {
    receiver.handle((_, response) => void response.writeHead(receiver.received.length === 1 ? 200 : 503).end());
    const tenant = await createTenant(relay.url);
    const slow = { delays_seconds: [3600], jitter: 0 };
    const { id } = await createEndpoint(tenant, {
      url: receiver.url,
      headers: { Authorization: SECRET },
      retry_policy: slow,
    });
    const { deliveries } = await publish(tenant);
    await terminalDelivery(tenant, deliveries[0].id);
    const change = (headers: unknown) =>
      expectStatus(200, tenant.admin.call("PATCH", `/v1/endpoints/${id}`, { headers }));

    await change({ Authorization: "Bearer second", "X-Team": "orders" });
    const replay = await expectStatus(202, tenant.admin.post(`/v1/deliveries/${deliveries[0].id}/replay`));
    await deliveryWhen(tenant, replay.id, ({ last_status_code }) => last_status_code === 503);
    await change({ Authorization: null });
    await expectStatus(202, tenant.admin.post(`/v1/deliveries/${replay.id}/retry`));
    await receiver.waitFor(3);
    expect(receiver.received.map(({ headers }) => [headers.authorization, headers["x-team"]])).toEqual([
      [SECRET, undefined],
      ["Bearer second", "orders"],
      [undefined, "orders"],
    ]);
  }));

test("hidden values outlive a restart, and nobody is shown them", () =>
  withReceiver(async (receiver) => {
    const first = await startRelayProcess();
    const tenant = await createTenant(first.url);
    const { id } = await createEndpoint(tenant, { url: receiver.url, headers: { Authorization: SECRET } });
    const shown = await expectStatus(200, tenant.admin.get(`/v1/endpoints/${id}`));
    expect(shown.headers).toEqual({ Authorization: "[redacted]" });
    await first.stop();
    const port = Number(new URL(first.url).port);
    const second = await startRelayProcess({ stateDir: first.stateDir, port });
    await publish(tenant);
    await receiver.waitFor(1);
    expect(receiver.received[0]!.headers.authorization).toBe(SECRET);
    await second.stop();
    expect(first.printed() + second.printed()).not.toContain("swordfish");
  }));

test("the value of a write-only header is in no answer, not even when the receiver sends it back under its own name", () =>
  withReceiver(async (receiver) => {
    const tenant = await createTenant(relay.url);
    receiver.handle(({ headers }, response) => {
      response.writeHead(500, { "X-Password": headers["x-password"]!, "X-Auth": headers["x-auth"]! }).end();
    });
    const headers = { "X-Password": "hunter2", "X-Auth": "hunter2" };
    const { id } = await createEndpoint(tenant, { url: receiver.url, headers });
    const attempt = await expectStatus(200, tenant.admin.post(`/v1/endpoints/${id}/test`));
    expect(JSON.parse(attempt.response_headers_json)).toMatchObject({
      "x-password": "[redacted]",
      "x-auth": "[redacted]",
    });
  }));
