import { afterAll, beforeAll, expect, test } from "vitest";
import { createClient, createEndpoint, createTenant, expectStatus, terminalDelivery } from "./support/client.ts";
import { LEASE_PATIENCE_MS } from "./support/eventually.ts";
import type { TestEndpoint, TestTenant } from "./support/client.ts";
import { FAULTY_ENTRY, setFaults } from "./support/faults.ts";
import { startReceiver, type Receiver } from "./support/receiver.ts";
import { OPERATOR_TOKEN, startRelayProcess, type RelayProcess } from "./support/relay-process.ts";
import { verifyJson } from "./support/signature.ts";
import { signHeaders } from "./support/signer.ts";

const SHARDS = ["0", "1"];
/** Tenants are spread by chance: that none of so many is in one of the shards does not happen. */
const MAX_TENANTS = 64;

interface Inhabitant extends TestTenant {
  endpoint: TestEndpoint;
}

let relay: RelayProcess;
let receiver: Receiver;
/** One tenant of each shard, and all that were made. */
const inhabitants = new Map<string, Inhabitant>();
const tenantIds: string[] = [];

beforeAll(async () => {
  [relay, receiver] = await Promise.all([
    startRelayProcess({ env: { HOOKLANE_ENTRY: FAULTY_ENTRY, HOOKLANE_SHARDS: String(SHARDS.length) } }),
    startReceiver(),
  ]);
  while (inhabitants.size < SHARDS.length && tenantIds.length < MAX_TENANTS) {
    const tenant = await createTenant(relay.url);
    tenantIds.push(tenant.id);
    const endpoint = await createEndpoint(tenant, { url: `${receiver.url}/${tenant.id}` });
    inhabitants.set(shardOf(tenant), { ...tenant, endpoint });
  }
});
afterAll(async () => {
  await Promise.all([relay.stop(), receiver.close()]);
});

const order = { type: "order.created", source: "orders", payload: { id: 1 }, idempotency_key: "order-1" };

test("tenants are spread over the shards, and the operator sees them all", async () => {
  expect([...inhabitants.keys()].toSorted()).toEqual(SHARDS);
  const { data } = await expectStatus(200, createClient(relay.url, OPERATOR_TOKEN).get("/v1/tenants?limit=250"));
  expect(data.map(({ id }: { id: string }) => id).toSorted()).toEqual(tenantIds.toSorted());
});

test("every shard has a watchdog of its own, which finds what the queue lost", async () => {
  await setFaults(relay.url, { queues: "lost" });
  const lost = await Promise.all(
    [...inhabitants.values()].map(async (tenant) => {
      const event = { ...order, idempotency_key: "lost" };
      return { tenant, event: await expectStatus(202, tenant.admin.post("/v1/events", event)) };
    }),
  );
  await setFaults(relay.url, {});
  for (const { tenant, event } of lost) {
    const delivery = await terminalDelivery(tenant, event.deliveries[0].id, LEASE_PATIENCE_MS);
    expect(delivery).toMatchObject({ status: "succeeded", attempt_count: 1 });
    expect(requestsFor(event.id)).toHaveLength(1);
  }
});

test("every shard takes, signs, delivers and records", async () => {
  for (const tenant of inhabitants.values()) {
    const event = await expectStatus(202, tenant.admin.post("/v1/events", order));
    const delivery = await terminalDelivery(tenant, event.deliveries[0].id);
    expect(delivery).toMatchObject({ status: "succeeded", attempt_count: 1 });
    const [request, ...more] = requestsFor(event.id);
    expect(more).toEqual([]);
    expect(request!.path).toBe(`/${tenant.id}`);
    expect(verifyJson(tenant.endpoint.secret, request!)).toMatchObject({ id: event.id, payload: order.payload });
    // The same key in another shard was another event.
    expect(await expectStatus(200, tenant.admin.post("/v1/events", order))).toMatchObject({ id: event.id });
  }
});

test("a signed publish finds the shard of its source, also after a rotation", async () => {
  for (const tenant of inhabitants.values()) {
    const made = await expectStatus(201, tenant.admin.post("/v1/sources", { name: "signing" }));
    const rotated = await expectStatus(201, tenant.admin.post(`/v1/sources/${made.id}/rotate-key`));
    const body = JSON.stringify({ type: "order.created", payload: { id: 1 } });
    for (const { id: sourceId, signing_key: key } of [made, rotated]) {
      const headers = signHeaders({ sourceId, key }, body);
      const event = await expectStatus(202, createClient(relay.url, null).post("/v1/events", body, headers));
      expect(await terminalDelivery(tenant, event.deliveries[0].id)).toMatchObject({ status: "succeeded" });
      expect(requestsFor(event.id)[0]!.path).toBe(`/${tenant.id}`);
    }
  }
});

test("what lies in one shard is 404 for a tenant of the other", async () => {
  const [first, second] = [...inhabitants.values()] as [Inhabitant, Inhabitant];
  for (const [owner, stranger] of [
    [first, second],
    [second, first],
  ] as const) {
    const { data: events } = await expectStatus(200, owner.admin.get("/v1/events"));
    const { data: deliveries } = await expectStatus(200, owner.admin.get("/v1/deliveries"));
    for (const path of [
      `/v1/events/${events[0].id}`,
      `/v1/events/${events[0].id}/payload`,
      `/v1/deliveries/${deliveries[0].id}`,
      `/v1/endpoints/${owner.endpoint.id}`,
      `/v1/subscriptions/${owner.endpoint.subscriptionId}`,
    ]) {
      await expectStatus(200, owner.admin.get(path));
      await expectStatus(404, stranger.admin.get(path));
    }
    await expectStatus(404, stranger.admin.post(`/v1/deliveries/${deliveries[0].id}/replay`));
    const { data: seen } = await expectStatus(200, stranger.admin.get("/v1/events"));
    expect(seen.map(({ id }: { id: string }) => id)).not.toContain(events[0].id);
  }
});

/** A key names the shard its tenant lives in. */
function shardOf({ adminKey }: TestTenant): string {
  return adminKey.split("_")[1]!;
}

function requestsFor(eventId: string) {
  return receiver.received.filter(({ headers }) => headers["x-webhook-event-id"] === eventId);
}
