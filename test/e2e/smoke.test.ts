import { afterAll, beforeAll, expect, test } from "vitest";
import { Webhook } from "standardwebhooks";
import { createEndpoint, createTenant, expectStatus, terminalDelivery } from "./support/client.ts";
import { startReceiver, type Receiver } from "./support/receiver.ts";
import { sharedRelay } from "./support/relay-process.ts";

const relay = await sharedRelay();
let receiver: Receiver;
beforeAll(async () => {
  receiver = await startReceiver();
});
afterAll(() => receiver.close());

test("an event is delivered once, signed, and its attempt is on record", async () => {
  const tenant = await createTenant(relay.url);
  const endpoint = await createEndpoint(tenant, { url: receiver.url });
  const event = await expectStatus(
    202,
    tenant.admin.post("/v1/events", { type: "order.created", source: "orders", payload: { id: 1 } }),
  );
  const [request] = await receiver.waitFor(1);
  const verified = new Webhook(endpoint.secret).verify(request!.body.toString(), request!.headers as never);
  expect(verified).toMatchObject({ id: event.id, source: "orders", payload: { id: 1 } });
  const delivery = await terminalDelivery(tenant, event.deliveries[0].id);
  expect(delivery).toMatchObject({ status: "succeeded", final_outcome: "delivered", attempt_count: 1 });
});
