import { describe, expect, test, type TestContext } from "vitest";
import { createEndpoint, createTenant, type TestTenant } from "./support/client.ts";
import { LEASE_PATIENCE_MS } from "./support/eventually.ts";
import { countFaults, FAULTY_ENTRY, setFaults } from "./support/faults.ts";
import { allDeliveries, countByWebhookId, publishMany } from "./support/many.ts";
import { startReceiver, type Receiver } from "./support/receiver.ts";
import { startRelayProcess, type RelayProcess } from "./support/relay-process.ts";

const EVENTS = 3_000;
const ENDPOINTS = 4;

interface Scene {
  relay: RelayProcess;
  receiver: Receiver;
  tenant: TestTenant;
}

/** A relay of its own for each test: the watchdog leaves 30 s to a doorbell, and the tests can wait for that together. */
async function startScene({ onTestFinished }: TestContext, endpoints: number): Promise<Scene> {
  const relay = await startRelayProcess({ env: { HOOKLANE_ENTRY: FAULTY_ENTRY } });
  const receiver = await startReceiver();
  onTestFinished(async () => void (await Promise.all([relay.stop(), receiver.close()])));
  const tenant = await createTenant(relay.url);
  for (let n = 0; n < endpoints; n++) await createEndpoint(tenant, { url: `${receiver.url}/${n}` });
  return { relay, receiver, tenant };
}

describe.concurrent("while the queues are away", () => {
  test("what was published while the queue lost every message arrives through the watchdog", async (context) => {
    const scene = await startScene(context, 1);
    const { relay, receiver, tenant } = scene;
    await setFaults(relay.url, { queues: "lost" });
    await publishMany(tenant, 300);
    const { queues } = await setFaults(relay.url, {});
    expect(queues).toBeGreaterThan(0);
    expect(receiver.received).toHaveLength(0);
    await receiver.waitFor(300, LEASE_PATIENCE_MS);
    await expectAllDelivered(scene, 300);
  });

  test("12,000 deliveries arrive through the watchdog while the queue refuses every send, and no publish fails for it", async (context) => {
    const scene = await startScene(context, ENDPOINTS);
    const { relay, receiver, tenant } = scene;
    await setFaults(relay.url, { queues: "refused" });
    const startedAt = Date.now();
    await publishMany(tenant, EVENTS);
    const publishedAt = Date.now();
    await receiver.waitFor(EVENTS * ENDPOINTS, LEASE_PATIENCE_MS);
    const arrivedAt = Date.now();
    expect((await countFaults(relay.url)).queues).toBeGreaterThan(0);
    await expectAllDelivered(scene, EVENTS * ENDPOINTS);
    console.log(
      `${EVENTS * ENDPOINTS} deliveries without a queue: published in ${publishedAt - startedAt} ms, ` +
        `first request after ${receiver.received[0]!.at - publishedAt} ms, last after ${arrivedAt - publishedAt} ms`,
    );
  });
});

async function expectAllDelivered({ tenant, receiver }: Scene, count: number) {
  const deliveries = await allDeliveries(tenant, count);
  expect(deliveries.filter(({ status, attempt_count }) => status !== "succeeded" || attempt_count !== 1)).toEqual([]);
  const requests = countByWebhookId(receiver.received);
  expect(deliveries.filter(({ idempotency_key }) => requests.get(idempotency_key) !== 1)).toEqual([]);
  expect(receiver.received).toHaveLength(count);
}
