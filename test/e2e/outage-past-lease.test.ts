import { afterAll, beforeAll, expect, test } from "vitest";
import { createEndpoint, createTenant, expectStatus, terminalDelivery } from "./support/client.ts";
import { LEASE_PATIENCE_MS } from "./support/eventually.ts";
import { FAULTY_ENTRY, setFaults } from "./support/faults.ts";
import { startReceiver, type Receiver } from "./support/receiver.ts";
import { startRelayProcess, type RelayProcess } from "./support/relay-process.ts";
import { sleep } from "./support/sleep.ts";

const TIMEOUT_MS = 15_000;
const LEASE_MS = TIMEOUT_MS + 30_000;

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

test("an answer that could not be recorded before its lease ended is not asked for again", async () => {
  const tenant = await createTenant(relay.url);
  await createEndpoint(tenant, { url: receiver.url, timeout_ms: TIMEOUT_MS });
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
  const delivery = await terminalDelivery(tenant, event.deliveries[0].id, LEASE_PATIENCE_MS);
  expect(receiver.received).toHaveLength(1);
  expect(delivery).toMatchObject({ status: "succeeded", attempt_count: 1 });
  expect(delivery.attempts).toMatchObject([{ outcome_class: "success", status_code: 200 }]);
});
