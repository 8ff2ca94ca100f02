import { expect, test } from "vitest";
import {
  createEndpoint,
  createTenant,
  deliveryWhen,
  expectStatus,
  publish,
  terminalDelivery,
} from "./support/client.ts";
import { withReceiver, type Handler } from "./support/receiver.ts";
import { sharedRelay } from "./support/relay-process.ts";
import { verifyJson } from "./support/signature.ts";

const relay = await sharedRelay();

const failing: Handler = (_, response) => void response.writeHead(500).end("no");
const timeOf = (time: string) => Date.parse(time);

test.concurrent("a receiver that goes on failing gets max_attempts requests, and the delivery ends exhausted", () =>
  withReceiver(async (receiver) => {
    receiver.handle(failing);
    const tenant = await createTenant(relay.url);
    const retry_policy = { delays_seconds: [0.05, 0.5, 1.2], jitter: 0, max_attempts: 4 };
    const { secret } = await createEndpoint(tenant, { url: receiver.url, retry_policy });
    const event = await publish(tenant);
    const delivery = await terminalDelivery(tenant, event.deliveries[0].id);
    expect(delivery).toMatchObject({
      status: "dead_letter",
      final_outcome: "exhausted",
      attempt_count: 4,
      last_status_code: 500,
      last_error_class: "http_5xx",
      next_attempt_at: null,
    });

    expect(delivery.attempts.map(({ attempt_number }: any) => attempt_number)).toEqual([1, 2, 3, 4]);
    for (const attempt of delivery.attempts) {
      expect(attempt).toMatchObject({ outcome_class: "transient", error_class: "http_5xx", status_code: 500 });
    }
    // Delay n runs from the end of failure n.
    for (const [i, delaySeconds] of retry_policy.delays_seconds.entries()) {
      const waitedMs = timeOf(delivery.attempts[i + 1].requested_at) - timeOf(delivery.attempts[i].responded_at);
      expect(waitedMs).toBeGreaterThanOrEqual(delaySeconds * 1000);
    }

    expect(receiver.received).toHaveLength(4);
    for (const [i, request] of receiver.received.entries()) {
      verifyJson(secret, request);
      expect(request.headers).toMatchObject({
        "webhook-id": delivery.idempotency_key,
        "webhook-timestamp": String(Math.floor(timeOf(delivery.attempts[i].requested_at) / 1000)),
        "x-webhook-delivery-id": delivery.id,
        "x-webhook-attempt": String(i + 1),
      });
    }
  }));

test.concurrent("a receiver that recovers gets the event at its next attempt, and no request after that", () =>
  withReceiver(async (receiver) => {
    receiver.handle(({ n }, response) => void response.writeHead(n < 3 ? 503 : 204).end());
    const tenant = await createTenant(relay.url);
    await createEndpoint(tenant, { url: receiver.url, retry_policy: { delays_seconds: [0.05] } });
    const event = await publish(tenant);
    const delivery = await terminalDelivery(tenant, event.deliveries[0].id);
    expect(delivery).toMatchObject({ status: "succeeded", final_outcome: "delivered", attempt_count: 3 });
    expect(delivery.attempts.map(({ status_code }: any) => status_code)).toEqual([503, 503, 204]);
    expect(receiver.received).toHaveLength(3);
  }));

test.concurrent("a policy patched while a delivery waits changes nothing for it, and holds for the next one", () =>
  withReceiver(async (receiver) => {
    receiver.handle(failing);
    const tenant = await createTenant(relay.url);
    const before = { delays_seconds: [3600], jitter: 0, max_attempts: 2 };
    const endpoint = await createEndpoint(tenant, { url: receiver.url, retry_policy: before });
    const { deliveries } = await publish(tenant);
    const waiting = await deliveryWhen(
      tenant,
      deliveries[0].id,
      ({ status, attempt_count }) => status === "pending" && attempt_count === 1,
    );
    const after = { delays_seconds: [0.05], jitter: 0, max_attempts: 3 };
    await expectStatus(200, tenant.admin.call("PATCH", `/v1/endpoints/${endpoint.id}`, { retry_policy: after }));

    const unchanged = await expectStatus(200, tenant.admin.get(`/v1/deliveries/${waiting.id}`));
    expect(unchanged).toEqual(waiting);
    expect(unchanged.retry_policy).toMatchObject(before);
    expect(timeOf(waiting.next_attempt_at) - timeOf(waiting.attempts[0].responded_at)).toBe(3_600_000);
    await expectStatus(202, tenant.admin.post(`/v1/deliveries/${waiting.id}/retry`));
    const ended = await terminalDelivery(tenant, waiting.id);
    expect(ended).toMatchObject({ attempt_count: 2, final_outcome: "exhausted", retry_policy: before });

    const next = await publish(tenant);
    const ended2 = await terminalDelivery(tenant, next.deliveries[0].id);
    expect(ended2).toMatchObject({ attempt_count: 3, final_outcome: "exhausted", retry_policy: after });
  }));

test.concurrent("a subscription's policy goes over its endpoint's", () =>
  withReceiver(async (receiver) => {
    receiver.handle(failing);
    const tenant = await createTenant(relay.url);
    const retry_policy = { delays_seconds: [0.05], max_attempts: 9 };
    const endpoint = await createEndpoint(tenant, { url: receiver.url, retry_policy });
    const path = `/v1/subscriptions/${endpoint.subscriptionId}`;
    await expectStatus(200, tenant.admin.call("PATCH", path, { retry_policy: { max_attempts: 2 } }));
    const { deliveries } = await publish(tenant);
    const delivery = await terminalDelivery(tenant, deliveries[0].id);
    expect(delivery).toMatchObject({ attempt_count: 2, final_outcome: "exhausted" });
    expect(delivery.retry_policy).toMatchObject({ delays_seconds: [0.05], max_attempts: 2 });
  }));

test.concurrent("max_age_seconds: 3 ends as expired, no earlier, with no attempt after it", () =>
  withReceiver(async (receiver) => {
    receiver.handle(failing);
    const tenant = await createTenant(relay.url);
    const retry_policy = { delays_seconds: [1], jitter: 0, max_attempts: 50, max_age_seconds: 3 };
    await createEndpoint(tenant, { url: receiver.url, retry_policy });
    const { deliveries } = await publish(tenant);
    const delivery = await terminalDelivery(tenant, deliveries[0].id);
    expect(delivery).toMatchObject({ status: "expired", final_outcome: "expired", next_attempt_at: null });
    const deadline = timeOf(delivery.scheduled_at) + 3_000;
    expect(timeOf(delivery.terminal_at)).toBeGreaterThanOrEqual(deadline);
    expect(receiver.received).toHaveLength(delivery.attempt_count);
    for (const { requested_at } of delivery.attempts) expect(timeOf(requested_at)).toBeLessThan(deadline);
  }));

test.concurrent("a delay that reaches past max_age_seconds ends the delivery at that age", () =>
  withReceiver(async (receiver) => {
    receiver.handle(failing);
    const tenant = await createTenant(relay.url);
    const retry_policy = { delays_seconds: [3600], max_age_seconds: 15 };
    await createEndpoint(tenant, { url: receiver.url, retry_policy });
    const { deliveries } = await publish(tenant);
    const delivery = await terminalDelivery(tenant, deliveries[0].id);
    expect(delivery).toMatchObject({ status: "expired", attempt_count: 1, last_status_code: 500 });
  }));

test.concurrent("the same status and body same_error_limit times running is taken for an answer", () =>
  withReceiver(async (receiver) => {
    receiver.handle((_, response) => void response.writeHead(404).end("no such hook"));
    const tenant = await createTenant(relay.url);
    const retry_policy = { delays_seconds: [0.05], max_attempts: 9, same_error_limit: 3 };
    await createEndpoint(tenant, { url: receiver.url, retry_policy });
    const { deliveries } = await publish(tenant);
    const delivery = await terminalDelivery(tenant, deliveries[0].id);
    expect(delivery).toMatchObject({ status: "dead_letter", final_outcome: "same_error", attempt_count: 3 });
    expect(delivery.attempts.map(({ outcome_class }: any) => outcome_class)).toEqual([
      "transient",
      "transient",
      "rejected",
    ]);
    expect(receiver.received).toHaveLength(3);
  }));

test.concurrent.each<[string, Handler]>([
  ["another body each time", ({ n }, response) => void response.writeHead(404).end(`no ${n}`)],
  ["another status in between", ({ n }, response) => void response.writeHead(n % 2 ? 404 : 403).end("no")],
  ["a class that is not listed", failing],
])("same_error_limit is not reached by %s", (_, handler) =>
  withReceiver(async (receiver) => {
    receiver.handle(handler);
    const tenant = await createTenant(relay.url);
    const retry_policy = { delays_seconds: [0.05], max_attempts: 3, same_error_limit: 2 };
    await createEndpoint(tenant, { url: receiver.url, retry_policy });
    const { deliveries } = await publish(tenant);
    const delivery = await terminalDelivery(tenant, deliveries[0].id);
    expect(delivery).toMatchObject({ status: "dead_letter", final_outcome: "exhausted", attempt_count: 3 });
  }),
);
