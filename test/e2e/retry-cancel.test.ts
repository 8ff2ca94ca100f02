import { expect, test } from "vitest";
import {
  createEndpoint,
  createTenant,
  expectStatus,
  publish,
  terminalDelivery,
  type TestTenant,
} from "./support/client.ts";
import { actOn, failedOnce } from "./support/lanes.ts";
import { withReceiver, type Receiver } from "./support/receiver.ts";
import { sharedRelay } from "./support/relay-process.ts";

const relay = await sharedRelay();

/** A delivery that has failed once and would wait for an hour. */
async function createWaiting(receiver: Receiver): Promise<{ tenant: TestTenant; id: string }> {
  receiver.handle(({ n }, response) => void response.writeHead(n === 1 ? 500 : 200).end());
  const tenant = await createTenant(relay.url);
  await createEndpoint(tenant, { url: receiver.url, retry_policy: { delays_seconds: [3600] } });
  const { deliveries } = await publish(tenant);
  const { id } = await failedOnce(tenant, deliveries[0].id);
  return { tenant, id };
}

/** Runs `use` while the receiver has a request and has not answered; what it answers then is 200. */
async function whileInFlight(receiver: Receiver, use: (tenant: TestTenant, id: string) => Promise<void>) {
  let answer = () => {};
  receiver.handle((_, response) => void (answer = () => void response.end()));
  const tenant = await createTenant(relay.url);
  await createEndpoint(tenant, { url: receiver.url });
  const { deliveries } = await publish(tenant);
  await receiver.waitFor(1);
  const { id } = deliveries[0];
  await use(tenant, id);
  answer();
  expect(await terminalDelivery(tenant, id)).toMatchObject({ status: "succeeded", attempt_count: 1 });
}

test("retry makes the next attempt of the same delivery at once", () =>
  withReceiver(async (receiver) => {
    const { tenant, id } = await createWaiting(receiver);
    expect(await expectStatus(202, actOn(tenant, id, "retry"))).toMatchObject({ id, replay_of: null });
    const delivery = await terminalDelivery(tenant, id);
    expect(delivery).toMatchObject({ status: "succeeded", attempt_count: 2 });
    expect(receiver.received.map(({ headers }) => headers["x-webhook-delivery-id"])).toEqual([id, id]);
    expect(receiver.received.map(({ headers }) => headers["x-webhook-attempt"])).toEqual(["1", "2"]);
  }));

test("retries at once make one attempt", () =>
  withReceiver(async (receiver) => {
    const { tenant, id } = await createWaiting(receiver);
    const answers = await Promise.all(Array.from({ length: 10 }, () => actOn(tenant, id, "retry")));
    expect(answers.map(({ status }) => status)).toContain(202);
    expect(await terminalDelivery(tenant, id)).toMatchObject({ attempt_count: 2 });
    expect(receiver.received).toHaveLength(2);
  }));

test("what has ended cannot be retried or cancelled", () =>
  withReceiver(async (receiver) => {
    const tenant = await createTenant(relay.url);
    await createEndpoint(tenant, { url: receiver.url });
    const { deliveries } = await publish(tenant);
    const ended = await terminalDelivery(tenant, deliveries[0].id);
    for (const action of ["retry", "cancel"] as const) {
      expect(await expectStatus(409, actOn(tenant, ended.id, action))).toMatchObject({ code: "not_pending" });
    }
    expect(await expectStatus(200, tenant.admin.get(`/v1/deliveries/${ended.id}`))).toEqual(ended);
    expect(receiver.received).toHaveLength(1);
  }));

test("what is in flight cannot be retried, cancelled or replayed, and ends as it would have", () =>
  withReceiver((receiver) =>
    whileInFlight(receiver, async (tenant, id) => {
      expect(await expectStatus(409, actOn(tenant, id, "retry"))).toMatchObject({ code: "not_pending" });
      expect(await expectStatus(409, actOn(tenant, id, "cancel"))).toMatchObject({ code: "in_flight" });
      expect(await expectStatus(409, actOn(tenant, id, "replay"))).toMatchObject({ code: "not_terminal" });
    }),
  ));

test("a cancelled delivery is attempted no more, and can be replayed", () =>
  withReceiver(async (receiver) => {
    const { tenant, id } = await createWaiting(receiver);
    const cancelled = await expectStatus(200, actOn(tenant, id, "cancel"));
    expect(cancelled).toMatchObject({
      status: "cancelled",
      final_outcome: "cancelled",
      next_attempt_at: null,
      terminal_at: expect.any(String),
    });
    await expectStatus(409, actOn(tenant, id, "retry"));
    expect(receiver.received).toHaveLength(1);
    const replay = await expectStatus(202, actOn(tenant, id, "replay"));
    expect(await terminalDelivery(tenant, replay.id)).toMatchObject({ status: "succeeded" });
    expect(receiver.received).toHaveLength(2);
  }));

test("of a retry and a cancel at once, either the attempt is made or it never is", () =>
  withReceiver(async (receiver) => {
    const { tenant, id } = await createWaiting(receiver);
    const [, cancel] = await Promise.all([actOn(tenant, id, "retry"), actOn(tenant, id, "cancel")]);
    const delivery = await terminalDelivery(tenant, id);
    expect(delivery.status).toBe(cancel.status === 200 ? "cancelled" : "succeeded");
    expect(receiver.received).toHaveLength(cancel.status === 200 ? 1 : 2);
    expect(delivery.attempt_count).toBe(receiver.received.length);
  }));
