import { CloudEvent, HTTP } from "cloudevents";
import { expect, test } from "vitest";
import { createEndpoint, createTenant, expectStatus, publish, terminalDelivery } from "./support/client.ts";
import { withReceiver, type Received } from "./support/receiver.ts";
import { sharedRelay } from "./support/relay-process.ts";
import { verifyJson } from "./support/signature.ts";

const relay = await sharedRelay();

const RETRY = { delays_seconds: [0.2], jitter: 0 };

/** As a consumer with the CloudEvents SDK has it, which throws on what is no event. */
function toEvent({ headers, body }: Received): CloudEvent<unknown> {
  const message = { headers, body: body.toString() };
  expect(HTTP.isEvent(message)).toBe(true);
  const event = HTTP.toEvent(message);
  if (!(event instanceof CloudEvent)) throw new Error("one event");
  event.validate();
  return event;
}

const ceHeaders = ({ headers }: Received) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith("ce-")));

test.each([{ ordering_mode: "unordered" }, { ordering_mode: "strict" }])(
  "a consumer's CloudEvents SDK reads every attempt and replay as one event, signed as any other (%j)",
  (route) =>
    withReceiver(async (receiver) => {
      receiver.handle(({ n }, response) => void response.writeHead(n === 1 ? 503 : 200).end());
      const tenant = await createTenant(relay.url);
      const settings = {
        payload_format: "cloudevents",
        retry_policy: RETRY,
        headers: { "X-Team": "orders" },
        ...route,
      };
      const { secret } = await createEndpoint(tenant, { url: receiver.url, ...settings });
      const occurred_at = "2026-11-30T12:00:00.250+02:00";
      const ordering_key = 'cart"7/100%';
      const event = { type: "order.paid", payload: { id: 42, total: 1 }, ordering_key, occurred_at };
      const { id, deliveries } = await publish(tenant, event);
      await terminalDelivery(tenant, deliveries[0].id);
      const replay = await expectStatus(202, tenant.admin.post(`/v1/deliveries/${deliveries[0].id}/replay`));
      await terminalDelivery(tenant, replay.id);

      expect(receiver.received).toHaveLength(3);
      for (const request of receiver.received) {
        expect(ceHeaders(request)).toEqual({
          "ce-specversion": "1.0",
          "ce-id": id,
          "ce-source": "/sources/orders",
          "ce-type": "order.paid",
          "ce-time": "2026-11-30T10:00:00.250Z",
          "ce-subject": "cart%227/100%25",
        });
        expect(toEvent(request)).toMatchObject({
          id,
          source: "/sources/orders",
          type: "order.paid",
          time: "2026-11-30T10:00:00.250Z",
          datacontenttype: "application/json",
          data: { id: 42, total: 1 },
        });
        expect(decodeURIComponent(toEvent(request).subject!)).toBe(ordering_key);
        // Over the body as it is sent, with the headers of every other format beside.
        expect(verifyJson(secret, request)).toEqual({ id: 42, total: 1 });
        expect(request.headers).toMatchObject({
          "x-webhook-event-id": id,
          "x-webhook-ordering-key": ordering_key,
          "x-webhook-occurred-at": "2026-11-30T10:00:00.250Z",
          "x-team": "orders",
        });
      }
    }),
);

test("without an ordering key there is no subject, and other formats have no ce- headers", () =>
  withReceiver(async (receiver) => {
    const tenant = await createTenant(relay.url);
    for (const payload_format of ["cloudevents", "envelope", "raw"]) {
      await createEndpoint(tenant, { url: `${receiver.url}/${payload_format}`, payload_format });
    }
    const { id } = await publish(tenant);
    await receiver.waitFor(3);
    for (const request of receiver.received) {
      if (request.path !== "/cloudevents") expect(ceHeaders(request)).toEqual({});
      else expect(toEvent(request)).toMatchObject({ id, subject: undefined, data: { id: 1 } });
    }
  }));

test("a change of format holds from the next attempt on, and a test send is in the format that there is", () =>
  withReceiver(async (receiver) => {
    const tenant = await createTenant(relay.url);
    const endpoint = await createEndpoint(tenant, { url: receiver.url });
    const path = `/v1/endpoints/${endpoint.id}`;
    await expectStatus(200, tenant.admin.call("PATCH", path, { payload_format: "cloudevents" }));
    await expectStatus(200, tenant.admin.post(`${path}/test`));
    const [request] = await receiver.waitFor(1);
    expect(toEvent(request!)).toMatchObject({
      source: "/sources/hooklane",
      type: "hooklane.test",
      data: { test: true },
    });
    expect(verifyJson(endpoint.secret, request!)).toEqual({ test: true });
  }));
