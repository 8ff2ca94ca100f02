import { afterAll, beforeAll, expect, test } from "vitest";
import {
  createEndpoint,
  createTenant,
  eventually,
  expectStatus,
  listAll,
  publish,
  type TestTenant,
} from "./support/client.ts";
import { withReceiver } from "./support/receiver.ts";
import { startRelayProcess, type RelayProcess } from "./support/relay-process.ts";

const MAX_HOPS = 4;

let relay: RelayProcess;
/** The same relay under a name that its settings do not know, as behind a second domain. */
let alias: string;
beforeAll(async () => {
  relay = await startRelayProcess({ env: { OWN_HOSTS: "relay.example.com" } });
  alias = relay.url.replace("localhost", "127.0.0.1");
});
afterAll(() => relay.stop());

/** Once nothing is open, and nothing more came of it. */
async function settled(tenant: TestTenant): Promise<{ events: any[]; deliveries: any[] }> {
  return eventually(async () => {
    const before = await listAll(tenant, "/v1/events");
    const deliveries = await listAll(tenant, "/v1/deliveries");
    const events = await listAll(tenant, "/v1/events");
    const isSettled = events.length === before.length && deliveries.every(({ terminal_at }) => terminal_at);
    return isSettled && { events, deliveries };
  });
}

async function publishingEndpoint(tenant: TestTenant, type: string, settings: object = {}): Promise<string> {
  const { id } = await createEndpoint(
    tenant,
    {
      url: `${alias}/v1/events/raw?type=${type}&source=orders`,
      payload_format: "raw",
      headers: { Authorization: `Bearer ${tenant.adminKey}` },
      ...settings,
    },
    type === "ring.tick" ? "ring.tock" : "ring.tick",
  );
  return id;
}

test("two endpoints that publish each other's events make a ring that ends by itself", async () => {
  const tenant = await createTenant(relay.url);
  await publishingEndpoint(tenant, "ring.tock");
  await publishingEndpoint(tenant, "ring.tick", { ordering_mode: "strict" });
  await publish(tenant, { type: "ring.tick" });
  await eventually(async () => (await listAll(tenant, "/v1/events")).length >= MAX_HOPS);
  const { events, deliveries } = await settled(tenant);
  expect(events.map(({ type }) => type)).toEqual(["ring.tock", "ring.tick", "ring.tock", "ring.tick"]);
  const [last, ...others] = deliveries;
  expect(last).toMatchObject({ status: "dead_letter", final_outcome: "rejected", last_status_code: 422 });
  expect(others.map(({ status }) => status)).toEqual(["succeeded", "succeeded", "succeeded"]);
  expect(last.attempt_count).toBe(1);
});

test("a replay begins no new ring: it hands on what its event came with", async () => {
  const tenant = await createTenant(relay.url);
  await publishingEndpoint(tenant, "ring.tock");
  await publishingEndpoint(tenant, "ring.tick");
  await publish(tenant, { type: "ring.tick" });
  await eventually(async () => (await listAll(tenant, "/v1/events")).length >= MAX_HOPS);
  const { deliveries } = await settled(tenant);
  await expectStatus(202, tenant.admin.post(`/v1/deliveries/${deliveries[0].id}/replay`));
  const after = await settled(tenant);
  expect(after.events).toHaveLength(MAX_HOPS);
  expect(after.deliveries).toHaveLength(MAX_HOPS + 1);
});

test("an endpoint that replays its own delivery is refused: what a relay sends publishes, and does nothing else", async () => {
  const tenant = await createTenant(relay.url);
  const { id } = await createEndpoint(tenant, {
    url: `${alias}/v1/tenants`,
    payload_format: "raw",
    headers: { Authorization: `Bearer ${tenant.adminKey}` },
  });
  const { deliveries } = await publish(tenant, { payload: {} });
  const url = `${alias}/v1/deliveries/${deliveries[0].id}/replay`;
  const first = await settled(tenant);
  expect(first.deliveries).toHaveLength(1);
  await expectStatus(200, tenant.admin.call("PATCH", `/v1/endpoints/${id}`, { url }));
  await expectStatus(202, tenant.admin.post(`/v1/deliveries/${deliveries[0].id}/replay`));
  const { deliveries: ended } = await settled(tenant);
  expect(ended.map(({ status }) => status)).toEqual(["dead_letter", "dead_letter"]);
});

test("a publish that says it has come through too many relays is refused on every route, and nothing is stored", async () => {
  const tenant = await createTenant(relay.url);
  const event = { type: "a.b", source: "orders", payload: 1 };
  const requests: [path: string, body: unknown][] = [
    ["/v1/events", event],
    ["/v1/events/raw?type=a.b&source=orders", "1"],
    ["/v1/events/batch", { events: [event, event] }],
  ];
  for (const [path, body] of requests) {
    for (const hops of [String(MAX_HOPS), "5", "99999999999999999999"]) {
      const answer = await tenant.admin.post(path, body, { "X-Webhook-Hop": hops });
      expect(answer.status).toBe(422);
      expect(answer.headers.get("content-type")).toBe("application/problem+json");
      expect(answer.body).toMatchObject({
        type: "urn:hooklane:problem:loop_detected",
        code: "loop_detected",
        status: 422,
      });
    }
    for (const hops of ["-1", "one", "1, 2", "1.5"]) {
      const problem = await expectStatus(422, tenant.admin.post(path, body, { "x-webhook-hop": hops }));
      expect(problem).toMatchObject({ code: "validation_failed", errors: [{ path: "X-Webhook-Hop" }] });
    }
  }
  expect(await listAll(tenant, "/v1/events")).toEqual([]);
});

test("below the limit an event is accepted, and its consumers are told one more", async () => {
  await withReceiver(async (receiver) => {
    const tenant = await createTenant(relay.url);
    await createEndpoint(tenant, { url: receiver.url });
    const event = { type: "a.b", source: "orders", payload: 1 };
    await expectStatus(202, tenant.admin.post("/v1/events", event));
    await expectStatus(202, tenant.admin.post("/v1/events", event, { "X-Webhook-Hop": "2" }));
    await expectStatus(202, tenant.admin.post("/v1/events/batch", { events: [event] }, { "X-Webhook-Hop": "3" }));
    await receiver.waitFor(3);
    expect(receiver.received.map(({ headers }) => headers["x-webhook-hop"]).toSorted()).toEqual(["1", "3", "4"]);
  });
});

test("the host under which a request reaches the relay is refused as a destination, and remembered for nobody", async () => {
  const tenant = await createTenant(relay.url);
  const { id } = await createEndpoint(tenant, { url: "http://127.0.0.1:9/" });
  const { host } = new URL(relay.url);
  for (const url of [
    `${relay.url}/v1/events`,
    `${relay.url.toUpperCase()}/x`,
    relay.url.replace("localhost", "localhost."),
  ]) {
    for (const refused of [
      tenant.admin.post("/v1/endpoints", { url }),
      tenant.admin.call("PATCH", `/v1/endpoints/${id}`, { url }),
    ]) {
      const problem = await expectStatus(422, refused);
      expect(problem.errors).toEqual([{ path: "url", message: "the host is this relay itself" }]);
    }
  }
  await expectStatus(422, tenant.admin.post("/v1/endpoints", { url: "http://relay.example.com/" }));
  // Another port is another service; and what one request was told by its host says nothing of the next.
  await expectStatus(201, tenant.admin.post("/v1/endpoints", { url: "http://localhost:9/" }));
  await expectStatus(201, tenant.admin.post("/v1/endpoints", { url: alias }));
  expect(alias).not.toContain(host);
});
