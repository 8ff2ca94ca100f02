import { afterAll, beforeAll, expect, test } from "vitest";
import { createClient, createEndpoint, createTenant, expectStatus } from "./support/client.ts";
import type { TestTenant } from "./support/client.ts";
import { allDeliveries, countByWebhookId, readDeliveries } from "./support/many.ts";
import { startReceiver, type Receiver } from "./support/receiver.ts";
import { startRelayProcess, type RelayProcess } from "./support/relay-process.ts";
import { sleep } from "./support/sleep.ts";

const EVENTS = 300;
const PUBLISHERS = 4;
const ANSWER_MS = 300;
/** Requests that have arrived when the relay is killed: some are on record by then, some in flight, most still wait. */
const ARRIVED_BEFORE = 60;

let relay: RelayProcess;
let receiver: Receiver;
beforeAll(async () => {
  [relay, receiver] = await Promise.all([startRelayProcess(), startReceiver()]);
});
afterAll(async () => {
  await Promise.all([relay.stop(), receiver.close()]);
});

test("a relay that is killed with 300 events under way loses nothing it has acknowledged", async () => {
  const tenant = await createTenant(relay.url);
  await createEndpoint(tenant, {
    url: receiver.url,
    timeout_ms: 3000,
    // A single counted failure would end a delivery: a crash is not one.
    retry_policy: { max_attempts: 1 },
  });
  receiver.handle(async (_, response) => {
    await sleep(ANSWER_MS);
    response.end("ok");
  });

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
  relay = await startRelayProcess({ stateDir: relay.stateDir });
  const revived = { ...tenant, admin: createClient(relay.url, tenant.adminKey) };
  // Nobody knows of these whether they were stored; the same key again makes it one event either way.
  for (const key of unanswered) {
    const answer = await revived.admin.post("/v1/events", event(key));
    expect([200, 202]).toContain(answer.status);
    acknowledged.set(key, answer.body.id);
  }

  const deliveries = await allDeliveries(revived, acknowledged.size, 90_000);
  const ids = deliveries.map(({ id }) => id);
  const byEvent = new Map((await readDeliveries(revived, ids)).map((delivery) => [delivery.event_id, delivery]));
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
});

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
