import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  createClient,
  createEndpoint,
  createTenant,
  expectStatus,
  publish,
  terminalDelivery,
  type TestTenant,
} from "./support/client.ts";
import { startReceiver, type Receiver } from "./support/receiver.ts";
import { OPERATOR_TOKEN, sharedRelay } from "./support/relay-process.ts";

const relay = await sharedRelay();
let receiver: Receiver;
beforeAll(async () => {
  receiver = await startReceiver();
});
afterAll(() => receiver.close());

const EVENT = { type: "order.created", source: "orders", payload: 1 };

/** A tenant that has published, so that the relay remembers its configuration. */
async function createRemembered(): Promise<TestTenant> {
  const tenant = await createTenant(relay.url);
  await publish(tenant, EVENT);
  return tenant;
}

// Each refused publish stands alone in its request: nothing is committed with it that would prove the configuration.
describe("a publish is decided by the configuration as it is, whatever was remembered", () => {
  test("a source made afterwards may publish, and a deleted one may not", async () => {
    const tenant = await createRemembered();
    const { id } = await expectStatus(201, tenant.admin.post("/v1/sources", { name: "carts" }));
    await publish(tenant, { ...EVENT, source: "carts" });
    await expectStatus(204, tenant.admin.call("DELETE", `/v1/sources/${id}`));
    await expectStatus(422, tenant.admin.post("/v1/events", { ...EVENT, source: "carts" }));
  });

  test("an allow-list that is narrowed refuses, and one that is widened allows", async () => {
    const tenant = await createRemembered();
    const path = `/v1/sources/${tenant.sourceId}`;
    await expectStatus(200, tenant.admin.call("PATCH", path, { allowed_event_types: ["cart.*"] }));
    const problem = await expectStatus(403, tenant.admin.post("/v1/events", EVENT));
    expect(problem).toMatchObject({ code: "event_type_not_allowed" });
    await expectStatus(200, tenant.admin.call("PATCH", path, { allowed_event_types: ["cart.*", "order.*"] }));
    await publish(tenant, EVENT);
  });

  test("a subscription made afterwards gets the event, and a deleted one does not", async () => {
    const tenant = await createRemembered();
    const endpoint = await createEndpoint(tenant, { url: receiver.url });
    const { deliveries } = await publish(tenant, EVENT);
    expect(await terminalDelivery(tenant, deliveries[0].id)).toMatchObject({ status: "succeeded" });
    await expectStatus(204, tenant.admin.call("DELETE", `/v1/subscriptions/${endpoint.subscriptionId}`));
    expect(await publish(tenant, EVENT)).toMatchObject({ delivery_count: 0 });
  });

  test("a subscription that is disabled gets nothing until it is enabled; what it made before goes on", async () => {
    const tenant = await createRemembered();
    const endpoint = await createEndpoint(tenant, { url: receiver.url });
    const before = await publish(tenant, EVENT);
    const path = `/v1/subscriptions/${endpoint.subscriptionId}`;
    await expectStatus(200, tenant.admin.post(`${path}/disable`));
    expect(await publish(tenant, EVENT)).toMatchObject({ delivery_count: 0 });
    expect(await terminalDelivery(tenant, before.deliveries[0].id)).toMatchObject({ status: "succeeded" });
    await expectStatus(200, tenant.admin.post(`${path}/enable`));
    const after = await publish(tenant, EVENT);
    expect(await terminalDelivery(tenant, after.deliveries[0].id)).toMatchObject({ status: "succeeded" });
  });

  test("a revoked key publishes nothing more, and is told so whatever it sends", async () => {
    const tenant = await createRemembered();
    const { id, key } = await expectStatus(201, tenant.admin.post("/v1/api-keys", { scope: "admin" }));
    const client = createClient(relay.url, key);
    await expectStatus(202, client.post("/v1/events", EVENT));
    await expectStatus(204, tenant.admin.call("DELETE", `/v1/api-keys/${id}`));
    await expectStatus(401, client.post("/v1/events", EVENT));
    await expectStatus(401, client.post("/v1/events", { ...EVENT, type: "no type" }));
    await expectStatus(401, client.get("/v1/events"));
  });

  test("a deleted tenant's keys are refused", async () => {
    const tenant = await createRemembered();
    const operator = createClient(relay.url, OPERATOR_TOKEN);
    await expectStatus(204, operator.call("DELETE", `/v1/tenants/${tenant.id}`));
    await expectStatus(401, tenant.admin.post("/v1/events", EVENT));
    await expectStatus(401, tenant.admin.get("/v1/events"));
  });
});
