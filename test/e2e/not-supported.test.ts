import { beforeAll, describe, expect, test } from "vitest";
import { createEndpoint, createTenant, expectStatus, listAll, type Client, type TestTenant } from "./support/client.ts";
import { sharedRelay } from "./support/relay-process.ts";

const relay = await sharedRelay();
let tenant: TestTenant;
let ids: { endpoint: string; subscription: string };
beforeAll(async () => {
  tenant = await createTenant(relay.url);
  const { id, subscriptionId } = await createEndpoint(tenant, { url: "http://127.0.0.1:9" }, "nothing");
  ids = { endpoint: id, subscription: subscriptionId };
});

const SUBSCRIPTION_FIELDS: [field: string, value: unknown][] = [["event_type_pattern", "hooklane.endpoint.enabled"]];

async function expectNotSupported(field: string, answer: ReturnType<Client["call"]>): Promise<void> {
  const problem = await expectStatus(422, answer);
  expect(problem.code).toBe("not_supported");
  expect(problem.errors.map(({ path }: { path: string }) => path.split(".")[0])).toEqual([field]);
}

describe("what is not built yet is refused by name, and changes nothing", () => {
  test.each(SUBSCRIPTION_FIELDS)("subscription.%s = %j", async (field, value) => {
    const before = await listAll(tenant, "/v1/subscriptions");
    const created = { endpoint_id: ids.endpoint, event_type_pattern: "*", [field]: value };
    await expectNotSupported(field, tenant.admin.post("/v1/subscriptions", created));
    const changed = { retry_policy: { max_attempts: 1 }, [field]: value };
    await expectNotSupported(field, tenant.admin.call("PATCH", `/v1/subscriptions/${ids.subscription}`, changed));
    expect(await listAll(tenant, "/v1/subscriptions")).toEqual(before);
  });
});

describe("a field that nobody knows is refused by name", () => {
  const requests: [method: string, path: string, body: Record<string, unknown>][] = [
    ["POST", "/v1/sources", { name: "carts" }],
    ["POST", "/v1/endpoints", { url: "http://127.0.0.1:9" }],
    ["POST", "/v1/subscriptions", { event_type_pattern: "*" }],
    ["POST", "/v1/api-keys", { scope: "read" }],
    ["POST", "/v1/events", { type: "t", source: "orders", payload: 1 }],
  ];
  test.each(requests)("%s %s", async (method, path, body) => {
    const whole = path === "/v1/subscriptions" ? { ...body, endpoint_id: ids.endpoint } : body;
    const problem = await expectStatus(422, tenant.admin.call(method, path, { ...whole, colour: "red" }));
    expect(problem).toMatchObject({ code: "validation_failed", errors: [{ path: "colour" }] });
  });

  test("retry_policy.colour", async () => {
    const retry_policy = { max_attempts: 2, colour: "red" };
    const problem = await expectStatus(
      422,
      tenant.admin.post("/v1/endpoints", { url: "http://127.0.0.1:9", retry_policy }),
    );
    expect(problem.errors).toEqual([expect.objectContaining({ path: "retry_policy.colour" })]);
  });
});
