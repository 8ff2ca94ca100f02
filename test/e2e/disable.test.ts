import { expect, test } from "vitest";
import { createEndpoint, createTenant, expectStatus, listAll, publish, terminalDelivery } from "./support/client.ts";
import { LEASE_PATIENCE_MS } from "./support/eventually.ts";
import { act, failedOnce, holding, readDelivery } from "./support/lanes.ts";
import { withReceiver, type Received } from "./support/receiver.ts";
import { sharedRelay } from "./support/relay-process.ts";

const relay = await sharedRelay();

/** Something that comes about from outside. */
function signal(): { arrived: Promise<void>; give: () => void } {
  let give = () => {};
  const arrived = new Promise<void>((resolve) => (give = resolve));
  return { arrived, give };
}

test.concurrent("a disabled endpoint holds what is pending, and enabling it resumes", () =>
  withReceiver(async (receiver) => {
    const of = (path: string) => (request: Received) => request.path === path;
    let isUp = false;
    receiver.handle((_, response) => void response.writeHead(isUp ? 200 : 500).end());
    const tenant = await createTenant(relay.url);
    const retry_policy = { delays_seconds: [0.5], jitter: 0, max_attempts: 50 };
    const held = await createEndpoint(tenant, { url: `${receiver.url}/held`, retry_policy });
    await createEndpoint(tenant, { url: `${receiver.url}/other`, retry_policy });
    const { deliveries } = await publish(tenant);
    const { id } = deliveries.find(({ endpoint_id }: any) => endpoint_id === held.id);

    const disabled = await act(tenant, held.id, "disable");
    expect(disabled).toMatchObject({
      state: "disabled",
      disabled_reason: "operator",
      disabled_at: expect.any(String),
      last_disabled_at: disabled.disabled_at,
    });
    const requestsBefore = receiver.received.filter(of("/held")).length;
    // The other endpoint's retries show that the held one's were due.
    const countOther = () => receiver.received.filter(of("/other")).length;
    for (let more = countOther() + 3; countOther() < more;) await receiver.waitFor(receiver.received.length + 1);
    // An attempt that was under way when the endpoint was disabled may still have arrived: one, no more.
    const requestsMeanwhile = receiver.received.filter(of("/held")).length;
    expect(requestsMeanwhile).toBeLessThanOrEqual(requestsBefore + 1);
    expect(await readDelivery(tenant, id)).toMatchObject({ status: "pending" });
    const problem = await expectStatus(409, tenant.admin.post(`/v1/deliveries/${id}/retry`));
    expect(problem).toMatchObject({ code: "held" });

    isUp = true;
    const enabled = await act(tenant, held.id, "enable");
    expect(enabled).toMatchObject({
      state: "active",
      disabled_at: null,
      disabled_reason: null,
      last_disabled_at: disabled.disabled_at,
    });
    expect(await terminalDelivery(tenant, id)).toMatchObject({ status: "succeeded" });
    expect(receiver.received.filter(of("/held"))).toHaveLength(requestsMeanwhile + 1);
  }));

test.concurrent("an attempt under way when its endpoint is disabled ends and is on record", () =>
  withReceiver(async (receiver) => {
    const disabled = signal();
    receiver.handle(async (_, response) => {
      await disabled.arrived;
      response.end("done");
    });
    const tenant = await createTenant(relay.url);
    const endpoint = await createEndpoint(tenant, { url: receiver.url });
    const { deliveries } = await publish(tenant);
    await receiver.waitFor(1);
    await act(tenant, endpoint.id, "disable");
    disabled.give();
    const delivery = await terminalDelivery(tenant, deliveries[0].id);
    expect(delivery).toMatchObject({ status: "succeeded", attempts: [{ outcome_class: "success" }] });
  }));

test.concurrent("what is accepted while an endpoint is disabled is born failed, and can be replayed afterwards", () =>
  withReceiver(async (receiver) => {
    const tenant = await createTenant(relay.url);
    const endpoint = await createEndpoint(tenant, { url: receiver.url });
    await act(tenant, endpoint.id, "disable");
    const event = await publish(tenant);
    expect(event.deliveries).toEqual([expect.objectContaining({ status: "failed", endpoint_id: endpoint.id })]);
    const { id } = event.deliveries[0];
    const born = await readDelivery(tenant, id);
    expect(born).toMatchObject({
      status: "failed",
      final_outcome: "endpoint_disabled",
      terminal_at: born.created_at,
      attempt_count: 0,
      attempts: [],
    });
    const refused = await expectStatus(409, tenant.admin.post(`/v1/deliveries/${id}/replay`));
    expect(refused).toMatchObject({ code: "endpoint_disabled" });

    await act(tenant, endpoint.id, "enable");
    const replay = await expectStatus(202, tenant.admin.post(`/v1/deliveries/${id}/replay`));
    expect(await terminalDelivery(tenant, replay.id)).toMatchObject({ status: "succeeded" });
    expect(await readDelivery(tenant, id)).toMatchObject({ status: "failed", replayed_as: replay.id });
    expect(receiver.received).toHaveLength(1);
  }));

test.concurrent("what is held past max_age_seconds ends as expired, without a request", () =>
  withReceiver(async (receiver) => {
    const { handler, letGo } = holding(500);
    receiver.handle(handler);
    const tenant = await createTenant(relay.url);
    const retry_policy = { delays_seconds: [1], jitter: 0, max_age_seconds: 15 };
    const endpoint = await createEndpoint(tenant, { url: receiver.url, retry_policy });
    const { deliveries } = await publish(tenant);
    await receiver.waitFor(1);
    await act(tenant, endpoint.id, "disable");
    letGo();
    // The watchdog ends holds; it may have gone to sleep for as long as it ever does.
    const delivery = await terminalDelivery(tenant, deliveries[0].id, LEASE_PATIENCE_MS);
    expect(delivery).toMatchObject({ status: "expired" });
    const ageMs = Date.parse(delivery.terminal_at) - Date.parse(delivery.scheduled_at);
    expect(ageMs).toBeGreaterThanOrEqual(15_000);
    expect(receiver.received).toHaveLength(1);
  }));

test.concurrent("410 ends the delivery and disables the endpoint, saying why", () =>
  withReceiver(async (receiver) => {
    receiver.handle((_, response) => void response.writeHead(410).end("moved away"));
    const tenant = await createTenant(relay.url);
    const endpoint = await createEndpoint(tenant, { url: receiver.url });
    const { deliveries } = await publish(tenant);
    expect(await terminalDelivery(tenant, deliveries[0].id)).toMatchObject({
      status: "dead_letter",
      final_outcome: "gone",
      last_error_class: "gone",
      attempt_count: 1,
      attempts: [{ outcome_class: "rejected", error_class: "gone", status_code: 410 }],
    });
    expect(await expectStatus(200, tenant.admin.get(`/v1/endpoints/${endpoint.id}`))).toMatchObject({
      state: "disabled",
      disabled_reason: "gone",
    });
    const meanwhile = await publish(tenant);
    expect(meanwhile.deliveries).toEqual([expect.objectContaining({ status: "failed" })]);
    expect(receiver.received).toHaveLength(1);

    receiver.handle((_, response) => void response.end());
    await act(tenant, endpoint.id, "enable");
    const next = await publish(tenant);
    expect(await terminalDelivery(tenant, next.deliveries[0].id)).toMatchObject({ status: "succeeded" });
  }));

test.concurrent("deleting an endpoint ends what is pending for it, and its history stays readable", () =>
  withReceiver(async (receiver) => {
    receiver.handle(({ n }, response) => void response.writeHead(n === 1 ? 200 : 500).end());
    const tenant = await createTenant(relay.url);
    const endpoint = await createEndpoint(tenant, { url: receiver.url, retry_policy: { delays_seconds: [3600] } });
    const delivered = await terminalDelivery(tenant, (await publish(tenant)).deliveries[0].id);
    const { deliveries } = await publish(tenant);
    const { id } = await failedOnce(tenant, deliveries[0].id);

    await expectStatus(204, tenant.admin.call("DELETE", `/v1/endpoints/${endpoint.id}`));
    expect(await terminalDelivery(tenant, id)).toMatchObject({
      status: "failed",
      final_outcome: "endpoint_deleted",
      attempt_count: 1,
      attempts: [{ status_code: 500 }],
    });
    expect(await readDelivery(tenant, delivered.id)).toEqual(delivered);
    expect(await listAll(tenant, `/v1/deliveries?endpoint_id=${endpoint.id}`)).toHaveLength(2);
    await expectStatus(404, tenant.admin.get(`/v1/endpoints/${endpoint.id}`));
    await expectStatus(404, tenant.admin.get(`/v1/subscriptions/${endpoint.subscriptionId}`));
    const refused = await expectStatus(409, tenant.admin.post(`/v1/deliveries/${id}/replay`));
    expect(refused).toMatchObject({ code: "endpoint_deleted" });
    expect(await publish(tenant)).toMatchObject({ delivery_count: 0 });
    expect(receiver.received).toHaveLength(2);
  }));

test.concurrent("deleting a disabled endpoint ends what it holds", () =>
  withReceiver(async (receiver) => {
    receiver.handle((_, response) => void response.writeHead(500).end());
    const tenant = await createTenant(relay.url);
    const endpoint = await createEndpoint(tenant, { url: receiver.url, retry_policy: { delays_seconds: [3600] } });
    const { deliveries } = await publish(tenant);
    await failedOnce(tenant, deliveries[0].id);
    await act(tenant, endpoint.id, "disable");
    await expectStatus(204, tenant.admin.call("DELETE", `/v1/endpoints/${endpoint.id}`));
    const delivery = await terminalDelivery(tenant, deliveries[0].id);
    expect(delivery).toMatchObject({ status: "failed", final_outcome: "endpoint_deleted" });
  }));

test.concurrent("a success that arrives after its endpoint was deleted is on record", () =>
  withReceiver(async (receiver) => {
    const deleted = signal();
    receiver.handle(async (_, response) => {
      await deleted.arrived;
      response.end();
    });
    const tenant = await createTenant(relay.url);
    const endpoint = await createEndpoint(tenant, { url: receiver.url });
    const { deliveries } = await publish(tenant);
    await receiver.waitFor(1);
    await expectStatus(204, tenant.admin.call("DELETE", `/v1/endpoints/${endpoint.id}`));
    deleted.give();
    expect(await terminalDelivery(tenant, deliveries[0].id)).toMatchObject({ status: "succeeded" });
  }));
