import { expect, test } from "vitest";
import {
  createClient,
  createEndpoint,
  createTenant,
  expectStatus,
  listAll,
  publish,
  terminalDelivery,
  type TestTenant,
} from "./support/client.ts";
import { LEASE_PATIENCE_MS } from "./support/eventually.ts";
import { failedOnce, holding, publishNumbered, QUICK_RETRY, readDelivery } from "./support/lanes.ts";
import { allDeliveries, countByWebhookId, readDeliveries } from "./support/many.ts";
import { withReceiver, type Received } from "./support/receiver.ts";
import { OPERATOR_TOKEN, startRelayProcess, type RelayProcess } from "./support/relay-process.ts";

const EVENTS = 300;
const PUBLISHERS = 4;
/** Requests that have arrived when the relay is killed: some are on record by then, some in flight, most still wait. */
const ARRIVED_BEFORE = 60;
/** Of those: the others are not answered any more. */
const ANSWERED_BEFORE = 50;

// Each kills a relay of its own, and waits with the others for leases to end and for the watchdog's patience.

/** The same relay on what it left behind. */
const restart = ({ stateDir, url }: RelayProcess) => startRelayProcess({ stateDir, port: Number(new URL(url).port) });

test.concurrent("a relay that is killed with 300 events under way loses nothing it has acknowledged", () =>
  withReceiver(async (receiver) => {
    const relay = await startRelayProcess();
    const tenant = await createTenant(relay.url);
    await createEndpoint(tenant, {
      url: receiver.url,
      timeout_ms: 5_000,
      // A single counted failure would end a delivery: a crash is not one.
      retry_policy: { max_attempts: 1 },
    });
    receiver.handle(({ n }, response) => void (n <= ANSWERED_BEFORE && response.end("ok")));

    /** Event ids by idempotency key. */
    const acknowledged = await publishAtOnce(tenant, EVENTS);
    const publishers = publishUntilCut(tenant, acknowledged);
    await receiver.waitFor(ARRIVED_BEFORE);
    await relay.kill();
    const unanswered = await Promise.all(publishers);
    const arrivedBefore = countByWebhookId(receiver.received).size;
    const acknowledgedBefore = acknowledged.size;
    expect(arrivedBefore).toBeLessThan(acknowledgedBefore);

    receiver.handle((_, response) => void response.end("ok"));
    const again = await restart(relay);
    // Nobody knows of these whether they were stored; the same key again makes it one event either way.
    for (const key of unanswered) {
      const answer = await tenant.admin.post("/v1/events", event(key));
      expect([200, 202]).toContain(answer.status);
      acknowledged.set(key, answer.body.id);
    }

    const deliveries = await allDeliveries(tenant, acknowledged.size, LEASE_PATIENCE_MS);
    const ids = deliveries.map(({ id }) => id);
    const byEvent = new Map((await readDeliveries(tenant, ids)).map((delivery) => [delivery.event_id, delivery]));
    const requests = countByWebhookId(receiver.received);
    let abandoned = 0;
    let lost = 0;
    let doubled = 0;
    for (const eventId of acknowledged.values()) {
      const delivery = byEvent.get(eventId);
      expect(delivery).toMatchObject({ status: "succeeded", final_outcome: "delivered" });
      const { attempts } = delivery;
      expect(attempts.map((attempt: any) => attempt.attempt_number)).toEqual(
        Array.from({ length: delivery.attempt_count }, (_, i) => i + 1),
      );
      expect(attempts.at(-1)).toMatchObject({ outcome_class: "success", error_class: null, status_code: 200 });
      for (const attempt of attempts.slice(0, -1)) {
        expect(attempt).toMatchObject({ outcome_class: "unreachable", error_class: "abandoned", status_code: null });
        abandoned++;
      }
      const times = requests.get(delivery.idempotency_key) ?? 0;
      if (times === 0) lost++;
      if (times > 1) doubled++;
      // Every request was on record before it was made.
      expect(times).toBeLessThanOrEqual(attempts.length);
    }
    console.log(
      `killed with ${acknowledgedBefore} events acknowledged, ${arrivedBefore} of them at the receiver, ` +
        `${unanswered.length} publishes cut: ${lost} lost, ${doubled} doubled, ${abandoned} attempts abandoned`,
    );
    expect(lost).toBe(0);
    expect(abandoned).toBeGreaterThan(0);
    await again.stop();
  }));

test.concurrent("a suspension outlives a crash of the relay, and so does what it holds", () =>
  withReceiver(async (receiver) => {
    const own = await startRelayProcess();
    const tenant = await createTenant(own.url);
    const { handler, letGo } = holding(503);
    receiver.handle(handler);
    await createEndpoint(tenant, { url: receiver.url, retry_policy: QUICK_RETRY });
    const { deliveries } = await publish(tenant);
    await receiver.waitFor(1);
    const operator = createClient(own.url, OPERATOR_TOKEN);
    await expectStatus(200, operator.call("PATCH", `/v1/tenants/${tenant.id}`, { status: "suspended" }));
    letGo();
    await failedOnce(tenant, deliveries[0].id);
    await own.kill();
    receiver.handle((_, response) => void response.end());

    const again = await restart(own);
    await expectStatus(403, tenant.admin.post("/v1/events", { type: "t", source: "orders", payload: 1 }));
    expect(await readDelivery(tenant, deliveries[0].id)).toMatchObject({ status: "pending", attempt_count: 1 });
    await expectStatus(200, operator.call("PATCH", `/v1/tenants/${tenant.id}`, { status: "active" }));
    // Its doorbell died with the process: whatever brings it back is bounded by the watchdog's patience.
    const delivery = await terminalDelivery(tenant, deliveries[0].id, LEASE_PATIENCE_MS);
    expect(delivery).toMatchObject({ status: "succeeded", attempt_count: 2 });
    await again.stop();
  }));

const isTest = ({ headers }: Received) => headers["x-webhook-event-type"] === "hooklane.test";

test.concurrent("while a test hangs, deliveries in order go on; when its relay is killed, it ends and is not made again", () =>
  withReceiver(async (receiver) => {
    receiver.handle((request, response) => void (isTest(request) ? null : response.end()));
    const own = await startRelayProcess();
    const tenant = await createTenant(own.url);
    const settings = { url: receiver.url, ordering_mode: "strict", on_exhausted: "block", timeout_ms: 15_000 };
    const endpoint = await createEndpoint(tenant, settings);
    const testing = tenant.admin.post(`/v1/endpoints/${endpoint.id}/test`).catch(() => null);
    await receiver.waitFor(1);
    const ids = await publishNumbered(tenant, 3);
    for (const id of ids) expect(await terminalDelivery(tenant, id)).toMatchObject({ status: "succeeded" });
    const [underWay] = await listAll(tenant, "/v1/deliveries?event_type=hooklane.test");
    expect(underWay).toMatchObject({ status: "processing", attempt_count: 1 });
    await own.kill();
    await testing;

    const again = await restart(own);
    expect(await terminalDelivery(tenant, underWay.id, LEASE_PATIENCE_MS)).toMatchObject({
      status: "dead_letter",
      final_outcome: "abandoned",
      attempts: [{ error_class: "abandoned" }],
    });
    const [last] = await publishNumbered(tenant, 1, { from: 3 });
    expect(await terminalDelivery(tenant, last!)).toMatchObject({ status: "succeeded" });
    expect(receiver.received.filter(isTest)).toHaveLength(1);
    await again.stop();
  }));

const event = (key: string) => ({
  type: "order.created",
  source: "orders",
  payload: { key },
  idempotency_key: key,
});

async function publishAtOnce({ admin }: TestTenant, count: number): Promise<Map<string, string>> {
  const events = Array.from({ length: count }, (_, n) => event(`batch-${n}`));
  const { results } = await expectStatus(202, admin.post("/v1/events/batch", { events }));
  return new Map(events.map(({ idempotency_key }, n) => [idempotency_key, results[n].id]));
}

/** Publishes without a pause until the relay is gone. Each publisher ends with the key it got no answer for. */
function publishUntilCut({ admin }: TestTenant, acknowledged: Map<string, string>): Promise<string>[] {
  return Array.from({ length: PUBLISHERS }, async (_, publisher) => {
    for (let n = 1; ; n++) {
      const key = `${publisher}-${n}`;
      const answer = await admin.post("/v1/events", event(key)).catch(() => null);
      if (answer === null) return key;
      if (answer.status !== 202) throw new Error(`A publish got ${answer.status}: ${JSON.stringify(answer.body)}`);
      acknowledged.set(key, answer.body.id);
    }
  });
}
