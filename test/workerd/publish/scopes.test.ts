import { expect, test } from "vitest";
import { createTestTenant } from "../support/api.ts";

async function createSubscriber(fields: Record<string, unknown> = {}) {
  const { api } = await createTestTenant();
  await api.post("/v1/sources", { name: "orders" });
  const { body: endpoint } = await api.post("/v1/endpoints", { url: "https://consumer.example/hook" });
  const { body: subscription } = await api.post("/v1/subscriptions", {
    endpoint_id: endpoint.id,
    event_type_pattern: "*",
    ...fields,
  });
  const publish = async (type: string) => (await api.post("/v1/events", { type, source: "orders", payload: 1 })).body;
  return { api, subscription, publish };
}

test("a required scope and an entitlement decide from the next publish on, and other types are not meant", async () => {
  const { api, subscription, publish } = await createSubscriber();
  const countOf = async (type: string) => (await publish(type)).delivery_count;
  await api.post("/v1/event-types", { name: "user.made", required_scope: "pii" });
  expect([await countOf("user.made"), await countOf("order.made")]).toEqual([0, 1]);
  const entitle = (entitlement_scope: string | null) =>
    api.patch(`/v1/subscriptions/${subscription.id}`, { entitlement_scope });
  expect((await entitle("orders pii")).body).toMatchObject({ entitlement_scope: "orders pii" });
  expect(await countOf("user.made")).toBe(1);
  await entitle("pii.all orders");
  expect(await countOf("user.made")).toBe(0);
  await api.patch("/v1/event-types/user.made", { required_scope: "orders" });
  expect(await countOf("user.made")).toBe(1);
  await entitle(null);
  expect(await countOf("user.made")).toBe(0);
  await api.patch("/v1/event-types/user.made", { required_scope: null });
  expect(await countOf("user.made")).toBe(1);
});

test("an entitlement is given with the subscription, and is left alone by other changes", async () => {
  const { api, subscription } = await createSubscriber({ entitlement_scope: "a b" });
  expect(subscription).toMatchObject({ entitlement_scope: "a b" });
  const changed = await api.patch(`/v1/subscriptions/${subscription.id}`, { event_type_pattern: "order.*" });
  expect(changed.body).toMatchObject({ entitlement_scope: "a b", event_type_pattern: "order.*" });
  expect((await api.get(`/v1/subscriptions/${subscription.id}`)).body).toEqual(changed.body);
});

test.each(["", " a", "a  b", "a ", 'a"b', "a\nb", "ü", "a".repeat(129), `${"a ".repeat(512)}a`, 7])(
  "an entitlement of %j is refused by name",
  async (entitlement_scope) => {
    const { api, subscription } = await createSubscriber();
    const answer = await api.patch(`/v1/subscriptions/${subscription.id}`, { entitlement_scope });
    expect(answer).toMatchObject({ status: 422, body: { errors: [{ path: "entitlement_scope" }] } });
  },
);
