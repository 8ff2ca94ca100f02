import { afterAll, beforeAll, expect, test } from "vitest";
import { parseExposition, type Samples } from "../support/exposition.ts";
import {
  createClient,
  createEndpoint,
  createTenant,
  eventually,
  expectStatus,
  publish,
  terminalDelivery,
  type TestTenant,
} from "./support/client.ts";
import { startReceiver, type Receiver } from "./support/receiver.ts";
import { OPERATOR_TOKEN, startRelayProcess, type RelayProcess } from "./support/relay-process.ts";

const TOKEN = "metrics-token-of-e2e";
const settings = { METRICS_TOKEN: TOKEN, HOOKLANE_SHARDS: "2" };
let relay: RelayProcess;
let receiver: Receiver;
let tenant: TestTenant;

beforeAll(async () => {
  [relay, receiver] = await Promise.all([startRelayProcess({ env: settings }), startReceiver()]);
  tenant = await createTenant(relay.url);
});
afterAll(async () => {
  await Promise.all([relay.stop(), receiver.close()]);
});

async function scrape(): Promise<Samples> {
  const answer = await createClient(relay.url, TOKEN).get("/metrics");
  expect(answer.status).toBe(200);
  return parseExposition(answer.body);
}

const DELIVERED = 'hooklane_deliveries_ended_total{status="succeeded",final_outcome="delivered"}';
const SUCCESS = 'hooklane_attempts_total{outcome_class="success",error_class=""}';
const ACCEPTED = 'hooklane_publishes_total{result="accepted"}';

/** The samples once they are as they must be: a lane's object hands over when it is idle. */
const scrapeWhen = (isRight: (samples: Samples) => boolean) =>
  eventually(async () => {
    const samples = await scrape();
    return isRight(samples) ? samples : null;
  });

test("publishes, attempts and ends by queues and lanes are in one scrape, and nobody else may read it", async () => {
  await createEndpoint(tenant, { url: `${receiver.url}/queue` });
  await createEndpoint(tenant, { url: `${receiver.url}/lane`, ordering_mode: "strict" });
  for (let n = 0; n < 5; n++) {
    const { deliveries } = await publish(tenant);
    for (const { id } of deliveries) await terminalDelivery(tenant, id);
  }
  const samples = await scrapeWhen((now) => now.get(SUCCESS) === 10);
  expect(samples.get(DELIVERED)).toBe(10);
  expect(samples.get(ACCEPTED)).toBe(5);
  expect(samples.get("hooklane_delivery_lag_seconds_count")).toBe(10);
  expect(samples.get("hooklane_dead_letters_open")).toBe(0);
  expect(samples.has("hooklane_oldest_due_timestamp_seconds")).toBe(false);
  for (const token of [null, OPERATOR_TOKEN, tenant.adminKey]) {
    expect((await createClient(relay.url, token).get("/metrics")).status).toBe(401);
  }
});

test("a watchdog that works says when it last did", async () => {
  const samples = await scrapeWhen((now) => now.has("hooklane_watchdog_last_tick_timestamp_seconds"));
  const agoSeconds = Date.now() / 1_000 - samples.get("hooklane_watchdog_last_tick_timestamp_seconds")!;
  expect(agoSeconds).toBeLessThan(600);
});

test("what was counted before a kill goes on counting in the isolates after it", async () => {
  const before = await scrape();
  await relay.kill();
  relay = await startRelayProcess({ env: settings, stateDir: relay.stateDir });
  const between = await scrape();
  expect(between.get(SUCCESS)).toBe(before.get(SUCCESS));
  expect(between.get(ACCEPTED)).toBe(before.get(ACCEPTED));
  tenant = { ...tenant, admin: createClient(relay.url, tenant.adminKey) };
  const { deliveries } = await publish(tenant);
  for (const { id } of deliveries) await terminalDelivery(tenant, id);
  const after = await scrapeWhen((now) => now.get(SUCCESS) === before.get(SUCCESS)! + 2);
  expect(after.get(ACCEPTED)).toBe(before.get(ACCEPTED)! + 1);
});

test("open dead letters and standing lanes are there to be alerted on, until somebody has acted", async () => {
  receiver.handle((request, response) => void response.writeHead(request.path === "/lane" ? 503 : 422).end());
  const { deliveries } = await publish(tenant);
  const samples = await scrapeWhen(
    (now) => now.get("hooklane_dead_letters_open") === 1 && now.get("hooklane_lanes_open") === 1,
  );
  const headAt = samples.get("hooklane_oldest_lane_head_timestamp_seconds")!;
  expect(Math.abs(Date.now() / 1_000 - headAt)).toBeLessThan(600);
  receiver.handle((_, response) => void response.end());
  for (const { id } of deliveries) {
    const delivery = (await tenant.admin.get(`/v1/deliveries/${id}`)).body;
    const act = delivery.status === "dead_letter" ? "replay" : "retry";
    await expectStatus(202, tenant.admin.post(`/v1/deliveries/${id}/${act}`));
  }
  await scrapeWhen((now) => now.get("hooklane_dead_letters_open") === 0 && now.get("hooklane_lanes_open") === 0);
});
