import { createHash } from "node:crypto";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import {
  createEndpoint,
  createTenant,
  eventually,
  expectStatus,
  terminalDelivery,
  type TestTenant,
} from "./support/client.ts";
import { countFaults, FAULTY_ENTRY, setFaults } from "./support/faults.ts";
import { startReceiver, type Receiver } from "./support/receiver.ts";
import { startRelayProcess, type RelayProcess } from "./support/relay-process.ts";

let relay: RelayProcess;
beforeAll(async () => {
  relay = await startRelayProcess({ env: { HOOKLANE_ENTRY: FAULTY_ENTRY } });
});
afterAll(() => relay.stop());

/** A tenant with one endpoint at a receiver of its own. What a fault would keep from being made is made before it. */
let tenant: TestTenant;
let receiver: Receiver;
beforeEach(async () => {
  await setFaults(relay.url, {});
  tenant = await createTenant(relay.url);
  receiver = await startReceiver();
  await createEndpoint(tenant, { url: receiver.url, timeout_ms: 10_000 });
  return () => receiver.close();
});

const order = { type: "order.created", source: "orders", payload: { id: 1 }, idempotency_key: "order-1" };
const publish = () => tenant.admin.post("/v1/events", order);

test("an answer that the ledger refuses to record is recorded later, and the request not made again", async () => {
  receiver.handle(async (_, response) => {
    await setFaults(relay.url, { ledger: { statements: "writes", fault: "refused" } });
    response.setHeader("X-Request-Id", "partner-7");
    response.end("thanks");
  });
  const event = await expectStatus(202, publish());
  await eventually(async () => (await countFaults(relay.url)).ledger >= 3);
  const recordableAt = Date.now();
  await setFaults(relay.url, {});

  const delivery = await terminalDelivery(tenant, event.deliveries[0].id);
  expect(delivery).toMatchObject({ status: "succeeded", final_outcome: "delivered", attempt_count: 1 });
  expect(delivery.attempts).toMatchObject([
    {
      outcome_class: "success",
      status_code: 200,
      response_body_sha256: createHash("sha256").update("thanks").digest("hex"),
      partner_request_id: "partner-7",
    },
  ]);
  // It ended when the receiver answered, not when the ledger could be told.
  expect(Date.parse(delivery.terminal_at)).toBeLessThan(recordableAt);
  expect(receiver.received).toHaveLength(1);
});

test("while the ledger and the queues are both away, memory keeps the answer", async () => {
  receiver.handle(async (_, response) => {
    await setFaults(relay.url, { ledger: { statements: "writes", fault: "refused" }, queues: "refused" });
    response.end("ok");
  });
  const event = await expectStatus(202, publish());
  await eventually(async () => {
    const { ledger, queues } = await countFaults(relay.url);
    return ledger >= 3 && queues >= 3;
  });
  await setFaults(relay.url, {});
  const delivery = await terminalDelivery(tenant, event.deliveries[0].id);
  expect(delivery).toMatchObject({ status: "succeeded", attempt_count: 1 });
  expect(receiver.received).toHaveLength(1);
});

test("a payload store that is away costs nobody an attempt", async () => {
  await setFaults(relay.url, { payloads: { gets: true } });
  const event = await expectStatus(202, publish());
  await eventually(async () => (await countFaults(relay.url)).payloads >= 2);
  const { body: waiting } = await tenant.admin.get(`/v1/deliveries/${event.deliveries[0].id}`);
  expect(waiting).toMatchObject({ status: "pending", attempt_count: 0 });
  await setFaults(relay.url, {});

  const delivery = await terminalDelivery(tenant, event.deliveries[0].id);
  expect(delivery).toMatchObject({ status: "succeeded", attempt_count: 1 });
  expect(delivery.attempts).toHaveLength(1);
  expect(receiver.received).toHaveLength(1);
});

test("a publish whose commit took effect and then failed is accepted all the same, once", async () => {
  await setFaults(relay.url, {
    ledger: { statements: "writes", containing: "insert into event ", fault: "answer_lost", times: 1 },
  });
  const event = await expectStatus(202, publish());
  expect(event).toMatchObject({ duplicate: false, delivery_count: 1 });
  expect(await countFaults(relay.url)).toMatchObject({ ledger: 1 });
  expect(await expectStatus(200, publish())).toMatchObject({ id: event.id, duplicate: true });
  await terminalDelivery(tenant, event.deliveries[0].id);
  await expectOneEvent(event.id);
});

test("a publish that could not be confirmed is 503, and the retry with its key is a duplicate of the one event", async () => {
  await setFaults(relay.url, {
    ledger: { statements: "writes", containing: "insert into event ", fault: "answer_lost" },
  });
  const answer = await publish();
  expect(answer).toMatchObject({ status: 503, body: { code: "unavailable" } });
  expect(answer.headers.get("Retry-After")).toBe("1");
  await setFaults(relay.url, {});

  const event = await expectStatus(200, publish());
  expect(event.duplicate).toBe(true);
  await terminalDelivery(tenant, event.deliveries[0].id);
  await expectOneEvent(event.id);
});

test("a claim whose answer was lost is taken up, and one request is made", async () => {
  await setFaults(relay.url, {
    ledger: { statements: "writes", containing: "set status = 'processing'", fault: "answer_lost", times: 1 },
  });
  const event = await expectStatus(202, publish());
  const delivery = await terminalDelivery(tenant, event.deliveries[0].id);
  expect(await countFaults(relay.url)).toMatchObject({ ledger: 1 });
  expect(delivery).toMatchObject({ status: "succeeded", attempt_count: 1 });
  expect(delivery.attempts).toHaveLength(1);
  expect(receiver.received).toHaveLength(1);
});

test("a close whose answer was lost changes nothing the second time", async () => {
  const loseOneClose = () =>
    setFaults(relay.url, {
      ledger: { statements: "writes", containing: "update attempt set", fault: "answer_lost", times: 1 },
    });
  await loseOneClose();
  const event = await expectStatus(202, publish());
  const id = event.deliveries[0].id;
  const first = await terminalDelivery(tenant, id);
  // The report now comes back from its queue, and again after the second loss: both find the work done.
  expect(await loseOneClose()).toMatchObject({ ledger: 1 });
  await eventually(async () => (await countFaults(relay.url)).ledger === 1);
  expect(await expectStatus(200, tenant.admin.get(`/v1/deliveries/${id}`))).toEqual(first);
  expect(receiver.received).toHaveLength(1);
});

test("a publish whose payload cannot be stored is 503 and leaves nothing behind", async () => {
  await setFaults(relay.url, { payloads: { puts: true } });
  const answer = await publish();
  expect(answer).toMatchObject({
    status: 503,
    body: { type: "urn:hooklane:problem:unavailable", code: "unavailable" },
  });
  expect(answer.headers.get("Content-Type")).toBe("application/problem+json");
  expect(JSON.stringify(answer.body)).not.toContain("refused by the test");
  await setFaults(relay.url, {});
  expect(await expectStatus(200, tenant.admin.get("/v1/events"))).toMatchObject({ data: [] });

  const event = await expectStatus(202, publish());
  expect(event.duplicate).toBe(false);
  await terminalDelivery(tenant, event.deliveries[0].id);
  await expectOneEvent(event.id);
});

test("while the ledger cannot be read a doorbell rings again, and nothing is lost or spent", async () => {
  // Publishing needs no read once the configuration is known.
  await expectStatus(202, tenant.admin.post("/v1/events", { ...order, idempotency_key: "warm" }));
  await receiver.waitFor(1);
  await setFaults(relay.url, { ledger: { statements: "reads", fault: "refused" } });
  const event = await expectStatus(202, publish());
  await eventually(async () => (await countFaults(relay.url)).ledger >= 2);
  expect(receiver.received).toHaveLength(1);
  await setFaults(relay.url, {});

  const delivery = await terminalDelivery(tenant, event.deliveries[0].id);
  expect(delivery).toMatchObject({ status: "succeeded", attempt_count: 1 });
  expect(receiver.received).toHaveLength(2);
});

async function expectOneEvent(id: string) {
  const { data } = await expectStatus(200, tenant.admin.get("/v1/events"));
  expect(data.map((event: { id: string }) => event.id)).toEqual([id]);
  expect(receiver.received).toHaveLength(1);
}
