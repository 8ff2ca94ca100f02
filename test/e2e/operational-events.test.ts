import { afterAll, beforeAll, expect, test } from "vitest";
import { Webhook } from "standardwebhooks";
import { createEndpoint, createTenant, listAll, publish, terminalDelivery } from "./support/client.ts";
import { withReceiver } from "./support/receiver.ts";
import { startRelayProcess, type RelayProcess } from "./support/relay-process.ts";

let relay: RelayProcess;
beforeAll(async () => {
  relay = await startRelayProcess();
});
afterAll(() => relay.stop());

test("who asks for it is told once, signed, of a dead letter and of the endpoint it disabled; `*` asks for none of it", () =>
  withReceiver(async (receiver) => {
    receiver.handle(({ path }, response) => void response.writeHead(path === "/gone" ? 410 : 200).end());
    const tenant = await createTenant(relay.url);
    const gone = await createEndpoint(tenant, { url: `${receiver.url}/gone` });
    await createEndpoint(tenant, { url: `${receiver.url}/all` });
    const pager = await createEndpoint(tenant, { url: `${receiver.url}/pager` }, "hooklane.*");
    const event = await publish(tenant);

    await receiver.waitFor(4);
    const told = receiver.received.filter(({ path }) => path === "/pager");
    const verified = told.map(({ body, headers }) => {
      expect(headers).toMatchObject({ "x-webhook-source": "hooklane", "x-webhook-hop": "1" });
      return new Webhook(pager.secret).verify(body, headers as Record<string, string>) as any;
    });
    const { id } = event.deliveries.find(({ endpoint_id }: any) => endpoint_id === gone.id);
    const { terminal_at } = await terminalDelivery(tenant, id);
    const of = (type: string) => verified.find((envelope) => envelope.type === type);
    expect(of("hooklane.delivery.dead_letter")).toMatchObject({
      source: "hooklane",
      occurred_at: terminal_at,
      payload: { delivery_id: id, event_id: event.id, final_outcome: "gone", last_status_code: 410 },
    });
    expect(of("hooklane.endpoint.disabled").payload).toEqual({
      endpoint_id: gone.id,
      reason: "gone",
      disabled_at: terminal_at,
    });

    // Whatever more there were would be on record by the time that a later event has arrived.
    await publish(tenant);
    await receiver.waitFor(5);
    const events = await listAll(tenant, "/v1/events");
    expect(events.map(({ type }) => type).toSorted()).toEqual([
      "hooklane.delivery.dead_letter",
      "hooklane.endpoint.disabled",
      "order.created",
      "order.created",
    ]);
    expect(receiver.received.map(({ path }) => path).toSorted()).toEqual(["/all", "/all", "/gone", "/pager", "/pager"]);
    for (const delivery of await listAll(tenant, `/v1/deliveries?endpoint_id=${pager.id}`)) {
      expect(await terminalDelivery(tenant, delivery.id)).toMatchObject({ status: "succeeded", attempt_count: 1 });
    }
  }));
