import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { decodeSigningSecret, signWebhook } from "../../../src/core/signature.ts";
import worker from "../../../src/index.ts";
import { createApi, createTestTenant, operatorToken, type TestTenant } from "../support/api.ts";
import { countingEnv, createCost } from "../support/counting.ts";
import { createTestContext } from "../support/worker.ts";

const SUBSCRIPTIONS = 40;

async function createSuspended(): Promise<{ tenant: TestTenant; source: { id: string; signing_key: string } }> {
  const tenant = await createTestTenant();
  const { body: source } = await tenant.api.post("/v1/sources", { name: "orders" });
  const { body: endpoint } = await tenant.api.post("/v1/endpoints", { url: "https://consumer.example/hook" });
  for (let n = 0; n < SUBSCRIPTIONS; n++) {
    await tenant.api.post("/v1/subscriptions", { endpoint_id: endpoint.id, event_type_pattern: `never.x${n}` });
  }
  await createApi(operatorToken).patch(`/v1/tenants/${tenant.id}`, { status: "suspended" });
  return { tenant, source };
}

async function publishCounted(headers: Record<string, string>) {
  const body = JSON.stringify({ type: "order.created", payload: 1, source: "orders" });
  const cost = createCost();
  const { context, settled } = createTestContext();
  const request = new Request("http://relay.test/v1/events", { method: "POST", body, headers });
  const response = await worker.fetch(request as never, countingEnv(env as Env, cost), context as ExecutionContext);
  const answered = { status: response.status, rowsRead: cost.rowsRead };
  await settled();
  return answered;
}

async function forged(source: { id: string }): Promise<Record<string, string>> {
  const key = decodeSigningSecret(`whsec_${btoa("\0".repeat(32))}`);
  if (!key.ok) throw new Error(key.error);
  const message = {
    id: "msg_1",
    timestampSeconds: Math.floor(Date.now() / 1_000),
    body: new TextEncoder().encode("x"),
  };
  return {
    "X-Webhook-Source": source.id,
    "webhook-id": message.id,
    "webhook-timestamp": String(message.timestampSeconds),
    "webhook-signature": await signWebhook([key.value], message),
  };
}

test("a bad signature for a source of a suspended tenant does not have its whole configuration read each time", async () => {
  const { source } = await createSuspended();
  await publishCounted(await forged(source));
  const again = await publishCounted(await forged(source));
  expect(again.status).toBe(401);
  expect(again.rowsRead).toBeLessThan(SUBSCRIPTIONS);
});

test("a suspended tenant's publish does not have its whole configuration read each time", async () => {
  const { tenant } = await createSuspended();
  const headers = { Authorization: `Bearer ${tenant.adminKey}` };
  await publishCounted(headers);
  const again = await publishCounted(headers);
  expect(again.status).toBe(403);
  expect(again.rowsRead).toBeLessThan(SUBSCRIPTIONS);
});

test("a publish with a read key does not have the tenant's whole configuration read each time", async () => {
  const { tenant } = await createSuspended();
  await createApi(operatorToken).patch(`/v1/tenants/${tenant.id}`, { status: "active" });
  const headers = { Authorization: `Bearer ${await tenant.readKey()}` };
  await publishCounted(headers);
  const again = await publishCounted(headers);
  expect(again.status).toBe(403);
  expect(again.rowsRead).toBeLessThan(SUBSCRIPTIONS);
});
