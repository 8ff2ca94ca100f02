import { afterAll, beforeAll, expect, test } from "vitest";
import {
  createEndpoint,
  createTenant,
  deliveryWhen,
  eventually,
  expectStatus,
  publish,
  type TestTenant,
} from "./support/client.ts";
import { nothingOpen, readDeliveries } from "./support/many.ts";
import { startReceiver, type Receiver } from "./support/receiver.ts";
import { readLane } from "./support/lanes.ts";
import { startRelayProcess, type RelayProcess } from "./support/relay-process.ts";

const HOLE = { timeout_ms: 10_000, retry_policy: { delays_seconds: [1], jitter: 0 } };

let relay: RelayProcess;
let healthy: Receiver;
let hole: Receiver;
beforeAll(async () => {
  [relay, healthy, hole] = await Promise.all([startRelayProcess(), startReceiver(), startReceiver(() => {})]);
});
afterAll(async () => {
  await relay.stop();
  await Promise.all([healthy.close(), hole.close()]);
});

async function publishMany({ admin }: TestTenant, type: string, count: number): Promise<any[]> {
  const events = Array.from({ length: count }, (_, n) => ({ type, source: "orders", payload: { n } }));
  return (await expectStatus(202, admin.post("/v1/events/batch", { events }))).results;
}

test("an endpoint that hangs costs its neighbours nothing, and gets everything when it answers, firsts before retries", async () => {
  const [own, other] = [await createTenant(relay.url), await createTenant(relay.url)];
  const endpoint = await createEndpoint(own, { url: hole.url, ...HOLE }, "hole");
  await createEndpoint(own, { url: `${healthy.url}/own` }, "healthy");
  await createEndpoint(other, { url: `${healthy.url}/other` }, "healthy");
  const endpointOf = () => expectStatus(200, own.admin.get(`/v1/endpoints/${endpoint.id}`));

  // While eight requests hang, and many more wait behind them.
  const [first] = await publishMany(own, "hole", 30);
  await hole.waitFor(1);
  await Promise.all([own, other].map((tenant) => publishMany(tenant, "healthy", 10)));
  await healthy.waitFor(20);
  const [held] = await readDeliveries(own, [first.deliveries[0].id]);
  expect(held, "the first request to the hole is still out").toMatchObject({ status: "processing", attempt_count: 1 });
  expect(hole.received.length).toBeLessThanOrEqual(8);

  // More comes, and it is found out.
  const quarantined = await eventually(async () => {
    await publish(own, { type: "hole" });
    const { quarantined_at } = await endpointOf();
    return quarantined_at;
  }, 60_000);
  expect(await readLane(own, endpoint.id)).toMatchObject({ mode: "unordered", quarantined_at: quarantined });
  expect(relay.printed()).toContain('"event":"quarantine_entered"');

  const until = hole.received.length;
  hole.handle((_, response) => void response.end("ok"));
  await nothingOpen(own, 90_000);
  await eventually(async () => (await endpointOf()).quarantined_at === null, 30_000);
  expect(relay.printed()).toContain('"event":"quarantine_left"');
  // The eight whose first attempts hung are older, and long due.
  const attempts = hole.received.slice(until).map(({ headers }) => Number(headers["x-webhook-attempt"]));
  expect(attempts.slice(0, 8)).toEqual(Array.from({ length: 8 }, () => 1));
  expect(attempts).toContain(2);

  // Queues serve it again.
  const { deliveries } = await publish(own, { type: "hole" });
  const after = await deliveryWhen(own, deliveries[0].id, ({ status }) => status === "succeeded");
  expect(after.attempts[0].worker_id).toMatch(/\.queue$/);
});
