import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { decodeSigningSecret, signWebhook } from "../../../src/core/signature.ts";
import worker from "../../../src/index.ts";
import { createTestTenant, type TestTenant } from "../support/api.ts";
import { countingEnv, createCost, type Cost } from "../support/counting.ts";
import { createTestContext } from "../support/worker.ts";

interface Source {
  id: string;
  signing_key: string;
}

async function createSource(): Promise<{ tenant: TestTenant; source: Source }> {
  const tenant = await createTestTenant();
  const { body: source } = await tenant.api.post("/v1/sources", { name: "orders" });
  const { body: endpoint } = await tenant.api.post("/v1/endpoints", { url: "https://consumer.example/hook" });
  await tenant.api.post("/v1/subscriptions", { endpoint_id: endpoint.id, event_type_pattern: "*" });
  return { tenant, source };
}

let serial = 0;

/** One signed publish through the whole Worker, with all it asked of its bindings until the answer. */
async function publishCounted(source: Source, changes: { id?: string } = {}): Promise<{ status: number; cost: Cost }> {
  const key = decodeSigningSecret(source.signing_key);
  if (!key.ok) throw new Error(key.error);
  const text = JSON.stringify({ type: "order.created", payload: { order: 42 } });
  const message = {
    id: changes.id ?? `msg_${++serial}`,
    timestampSeconds: Math.floor(Date.now() / 1_000),
    body: new TextEncoder().encode(text),
  };
  const request = new Request("http://relay.test/v1/events", {
    method: "POST",
    body: text,
    headers: {
      "X-Webhook-Source": source.id,
      "webhook-id": message.id,
      "webhook-timestamp": String(message.timestampSeconds),
      "webhook-signature": await signWebhook([key.value], message),
    },
  });
  const cost = createCost();
  const { context, settled } = createTestContext();
  const response = await worker.fetch(request as never, countingEnv(env as Env, cost), context as ExecutionContext);
  const answered = { status: response.status, cost: { ...cost } };
  await settled();
  return answered;
}

test("the ack of a signed publish takes two trips, and writes what one with a key and an idempotency key does", async () => {
  const { source } = await createSource();
  // The first of an isolate looks up the source's place and its tenant's configuration.
  const first = await publishCounted(source);
  expect(first).toMatchObject({ status: 202, cost: { ledgerTrips: 3, classA: 1, classB: 0 } });
  const second = await publishCounted(source);
  expect(second).toMatchObject({ status: 202, cost: { ledgerTrips: 1, classA: 1, classB: 0, rowsWritten: 5 } });
});

test("a signed publish that comes again writes no row", async () => {
  const { source } = await createSource();
  await publishCounted(source, { id: "msg_again" });
  const again = await publishCounted(source, { id: "msg_again" });
  expect(again).toMatchObject({ status: 200, cost: { ledgerTrips: 2, rowsWritten: 0 } });
});

test("a new key is proved by one look and one load, and the next publish takes two trips again", async () => {
  const { tenant, source } = await createSource();
  await publishCounted(source);
  const { body: rotated } = await tenant.api.post(`/v1/sources/${source.id}/rotate-key`);
  expect(await publishCounted(rotated)).toMatchObject({ status: 202, cost: { ledgerTrips: 3 } });
  expect(await publishCounted(rotated)).toMatchObject({ status: 202, cost: { ledgerTrips: 1 } });
  expect(await publishCounted(source)).toMatchObject({ status: 202, cost: { ledgerTrips: 1 } });
});

test("a key that has ended since it was remembered is refused by the commit, and nothing is stored", async () => {
  const { tenant, source } = await createSource();
  await publishCounted(source);
  for (let n = 0; n < 2; n++) await tenant.api.post(`/v1/sources/${source.id}/rotate-key`, { force: true });
  expect((await publishCounted(source)).status).toBe(401);
  expect((await tenant.api.get("/v1/events")).body.data).toHaveLength(1);
});

test("a bad signature costs a row that is read, and stores nothing, however often it comes", async () => {
  const { tenant, source } = await createSource();
  const { source: other } = await createSource();
  await publishCounted(source);
  const forged = { ...source, signing_key: other.signing_key };
  for (let n = 0; n < 3; n++) {
    const { status, cost } = await publishCounted(forged);
    expect(status).toBe(401);
    expect(cost).toMatchObject({ ledgerTrips: 1, rowsRead: 1, rowsWritten: 0, classA: 0, classB: 0 });
  }
  expect((await tenant.api.get("/v1/events")).body.data).toHaveLength(1);
});

test("a source that nobody knows costs one look-up", async () => {
  const { source } = await createSource();
  const { status, cost } = await publishCounted({ ...source, id: "src_0000000000000000" });
  expect(status).toBe(401);
  expect(cost).toMatchObject({ ledgerTrips: 1, rowsWritten: 0, classA: 0 });
  expect(cost.rowsRead).toBeLessThanOrEqual(1);
});
