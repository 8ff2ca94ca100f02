import { afterAll, beforeAll, expect, test } from "vitest";
import {
  createClient,
  createEndpoint,
  createTenant,
  publish,
  terminalDelivery,
  type TestTenant,
} from "./support/client.ts";
import { LEASE_PATIENCE_MS } from "./support/eventually.ts";
import { keyOf, laneWhen, numberOf, publishNumbered, range, readLane } from "./support/lanes.ts";
import { inTime, shortestSpanMs } from "./support/rate.ts";
import { startReceiver, type Received, type Receiver } from "./support/receiver.ts";
import { startRelayProcess, type RelayProcess } from "./support/relay-process.ts";

const RATE = 20;
const LIMITED_EVENTS = 100;
const ANSWER_MS = 40;
/** The lease of an attempt that died is this and half a minute. */
const timeout_ms = 8_000;
/** A single counted failure would end a delivery: a crash is not one. */
const retry_policy = { max_attempts: 1 };

interface Scene {
  receiver: Receiver;
  tenant: TestTenant;
  endpointId: string;
}

let relay: RelayProcess;
let strict: Scene;
let keyed: Scene;
let blocked: Scene;
let limited: Scene;
/** Delivery ids of the events 0, 1, 2, …, each published after the one before was acknowledged. */
let strictIds: string[];
let keyedIds: string[];
let limitedIds: string[];
let blockedLane: any;

async function createScene(settings: Record<string, unknown>): Promise<Scene> {
  const [receiver, tenant] = await Promise.all([startReceiver(), createTenant(relay.url)]);
  const { id } = await createEndpoint(tenant, { url: receiver.url, timeout_ms, retry_policy, ...settings });
  return { receiver, tenant, endpointId: id };
}

/** Publishes without a pause until the relay is gone; what was not acknowledged is not among the ids. */
async function publishUntilCut({ tenant }: Scene, ordering: (n: number) => Record<string, unknown>): Promise<string[]> {
  const ids: string[] = [];
  for (;;) {
    const n = ids.length;
    const answer = await publish(tenant, { payload: { n }, ...ordering(n) }).catch(() => null);
    if (answer === null) return ids;
    ids.push(answer.deliveries[0].id);
  }
}

/** Kills the relay with four lanes at work, and starts it again on what it left behind. */
beforeAll(async () => {
  relay = await startRelayProcess();
  [strict, keyed, blocked, limited] = await Promise.all([
    createScene({ ordering_mode: "strict" }),
    createScene({ ordering_mode: "keyed", concurrency_cap: 3 }),
    createScene({ ordering_mode: "strict", on_exhausted: "block" }),
    createScene({ rate_limit_per_second: RATE }),
  ]);
  for (const { receiver } of [strict, keyed])
    receiver.handle((_, answer) => void setTimeout(() => answer.end(), ANSWER_MS));
  blocked.receiver.handle((request, response) => void response.writeHead(numberOf(request) === 1 ? 400 : 200).end());

  await publishNumbered(blocked.tenant, 4);
  blockedLane = await laneWhen(blocked.tenant, blocked.endpointId, "blocked");
  limitedIds = await publishNumbered(limited.tenant, LIMITED_EVENTS);
  const publishing = Promise.all([
    publishUntilCut(strict, () => ({})),
    publishUntilCut(keyed, (n) => ({ ordering_key: `key-${n % 5}` })),
  ]);
  await Promise.all([strict.receiver.waitFor(15), keyed.receiver.waitFor(15), limited.receiver.waitFor(RATE + 5)]);
  await relay.kill();
  [strictIds, keyedIds] = await publishing;

  relay = await startRelayProcess({ stateDir: relay.stateDir });
  for (const scene of [strict, keyed, blocked, limited]) {
    scene.tenant = { ...scene.tenant, admin: createClient(relay.url, scene.tenant.adminKey) };
  }
});
afterAll(async () => {
  await relay.stop();
  await Promise.all([strict, keyed, blocked, limited].map(({ receiver }) => receiver.close()));
});

/** Numbers in the order of their first arrivals: what a crash cut off comes again, and that is no change of order. */
function firstArrivals(received: Received[]): number[] {
  return [...new Set(received.map(numberOf))];
}

/** All of them, ended; fails unless each succeeded, after no more than attempts that the crash cut off. */
async function expectAllDelivered({ tenant }: Scene, ids: string[]): Promise<any[]> {
  const deliveries = await Promise.all(ids.map((id) => terminalDelivery(tenant, id, LEASE_PATIENCE_MS)));
  for (const { status, attempts } of deliveries) {
    expect(status).toBe("succeeded");
    expect(attempts.at(-1)).toMatchObject({ outcome_class: "success" });
    for (const attempt of attempts.slice(0, -1)) expect(attempt).toMatchObject({ error_class: "abandoned" });
  }
  return deliveries;
}

const abandonedOf = (deliveries: any[]) =>
  deliveries.flatMap(({ attempts }) => attempts).filter(({ error_class }) => error_class === "abandoned");

test("strict: what was acknowledged in order arrives in order, killed in mid-lane or not", async () => {
  const deliveries = await expectAllDelivered(strict, strictIds);
  // The last publish may have been stored without being acknowledged.
  expect(firstArrivals(strict.receiver.received).slice(0, strictIds.length)).toEqual(range(strictIds.length));
  // There was never more than one under way; its lease ended and it was attempted again.
  const abandoned = abandonedOf(deliveries);
  expect(abandoned.length).toBeLessThanOrEqual(1);
  expect(strict.receiver.received.length).toBeLessThanOrEqual(strictIds.length + 2);
  console.log(`strict lane killed with ${strictIds.length} acknowledged: ${abandoned.length} attempt abandoned`);
});

test("keyed: each key's events arrive in order, and no more are taken up again than the cap allows under way", async () => {
  const deliveries = await expectAllDelivered(keyed, keyedIds);
  for (const [key, received] of Map.groupBy(keyed.receiver.received, keyOf)) {
    const numbers = firstArrivals(received);
    expect({ key, numbers }).toEqual({ key, numbers: numbers.toSorted((a, b) => a - b) });
  }
  expect(new Set(keyed.receiver.received.map(numberOf)).size).toBeGreaterThanOrEqual(keyedIds.length);
  expect(abandonedOf(deliveries).length).toBeLessThanOrEqual(3);
});

test("a blocked lane is still blocked by the same head, and goes on when that is skipped", async () => {
  const { tenant, endpointId, receiver } = blocked;
  expect(await readLane(tenant, endpointId)).toEqual(blockedLane);
  const delivery_id = blockedLane.heads[0].delivery_id;
  expect((await tenant.admin.post(`/v1/endpoints/${endpointId}/lane/skip`, { delivery_id })).status).toBe(200);
  await receiver.waitFor(4);
  expect(receiver.received.map(numberOf)).toEqual(range(4));
});

test("a rate holds across the restart, of which it knows nothing", async () => {
  await expectAllDelivered(limited, limitedIds);
  expect(new Set(limited.receiver.received.map(numberOf)).size).toBe(LIMITED_EVENTS);
  expect(shortestSpanMs(limited.receiver.received.map(inTime), RATE)).toBeGreaterThanOrEqual(1_000);
});
