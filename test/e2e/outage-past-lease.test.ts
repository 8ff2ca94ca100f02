import { afterAll, beforeAll, expect, test } from "vitest";
import { createEndpoint, createTenant, expectStatus, terminalDelivery } from "./support/client.ts";
import { FAULTY_ENTRY, setFaults } from "./support/faults.ts";
import { startReceiver, type Receiver } from "./support/receiver.ts";
import { startRelayProcess, type RelayProcess } from "./support/relay-process.ts";
import { sleep } from "./support/sleep.ts";

/** The shortest lease there is: the shortest deadline and the margin. */
const LEASE_MS = 1_000 + 30_000;

let relay: RelayProcess;
let receiver: Receiver;
beforeAll(async () => {
  [relay, receiver] = await Promise.all([
    startRelayProcess({ env: { HOOKLANE_ENTRY: FAULTY_ENTRY } }),
    startReceiver(),
  ]);
});
afterAll(async () => {
  await Promise.all([relay.stop(), receiver.close()]);
});

test(
  "an answer that could not be recorded before its lease ended is not asked for again",
  { timeout: 180_000 },
  async () => {
    const tenant = await createTenant(relay.url);
    await createEndpoint(tenant, { url: receiver.url, timeout_ms: 1000 });
    receiver.handle(async (_, response) => {
      await setFaults(relay.url, { ledger: { statements: "writes", fault: "refused" } });
      response.end("ok");
    });
    const event = await expectStatus(
      202,
      tenant.admin.post("/v1/events", { type: "order.created", source: "orders", payload: { id: 1 } }),
    );
    await receiver.waitFor(1);
    await sleep(LEASE_MS + 4_000);
    receiver.handle((_, response) => void response.end("again"));
    await setFaults(relay.url, {});

    // The report is in its queue, which tries once a minute by now; until then the watchdog must keep still.
    const delivery = await terminalDelivery(tenant, event.deliveries[0].id, 120_000);
    expect(receiver.received).toHaveLength(1);
    expect(delivery).toMatchObject({ status: "succeeded", attempt_count: 1 });
    expect(delivery.attempts).toMatchObject([{ outcome_class: "success", status_code: 200 }]);
  },
);
