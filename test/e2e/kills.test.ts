import { afterAll, beforeAll, expect, test } from "vitest";
import { createTenant, expectStatus, terminalDelivery, type TestTenant } from "./support/client.ts";
import { LEASE_PATIENCE_MS } from "./support/eventually.ts";
import * as beside from "./support/kills/beside.ts";
import { readLedger } from "./support/kills/ledger.ts";
import { createLives } from "./support/kills/lives.ts";
import { planKills } from "./support/kills/plan.ts";
import { startPublishing, type Publishing } from "./support/kills/publishing.ts";
import { createTargets, startVisits, TIMEOUT_MS, type OrderTarget } from "./support/kills/receiving.ts";
import { judge, type Visit } from "./support/kills/verdict.ts";
import { numberOf, range, readDelivery, readLane } from "./support/lanes.ts";
import { inTime, shortestSpanMs } from "./support/rate.ts";
import { hasOpen } from "./support/many.ts";
import { startReceiver, type Receiver } from "./support/receiver.ts";
import { sleep } from "./support/sleep.ts";

/** 200 by `npm run test:chaos`, which sets HOOKLANE_CHAOS. */
const ROUNDS = Number(process.env["HOOKLANE_KILL_ROUNDS"] ?? (process.env["HOOKLANE_CHAOS"] ? 200 : 10));
/** Decides what is published, refused and killed when; how fast all that goes is the machine's. */
const SEED = Number(process.env["HOOKLANE_KILL_SEED"] ?? Date.now() % 2 ** 31);
/** A start takes seconds on a busy machine, and the last leases half a minute. */
const LIMIT_MS = 120_000 + ROUNDS * 30_000;

/** Each look costs reads that grow with what was published. */
const POLL_MS = 500;

type Lives = Awaited<ReturnType<typeof createLives>>;

let lives: Lives;
let tenant: TestTenant;
let receiver: Receiver;
let publishing: Publishing;
let visits: Visit[];
let targets: OrderTarget[];
let blocked: Awaited<ReturnType<typeof beside.createBlocked>>;
let limited: Awaited<ReturnType<typeof beside.createLimited>>;
let suspended: Awaited<ReturnType<typeof beside.createSuspended>>;
let testing: Awaited<ReturnType<typeof beside.createTesting>>;

/** Seed and kills, for whoever has to find out what went wrong. */
const story = () =>
  [
    `HOOKLANE_KILL_SEED=${SEED} HOOKLANE_KILL_ROUNDS=${ROUNDS}`,
    ...lives.kills.map((kill) => JSON.stringify(kill)),
  ].join("\n");

/** Kills one relay after the other on what the one before left, with traffic all the time, and leaves the last running. */
beforeAll(async () => {
  console.log(`kills: HOOKLANE_KILL_SEED=${SEED} HOOKLANE_KILL_ROUNDS=${ROUNDS}`);
  lives = await createLives();
  const plan = planKills(SEED, ROUNDS);
  await lives.killStarting(plan.first);
  await lives.run();
  [tenant, receiver, blocked, limited, suspended] = await Promise.all([
    createTenant(lives.url),
    startReceiver(),
    beside.createBlocked(lives.url),
    beside.createLimited(lives.url),
    beside.createSuspended(lives.url),
  ]);
  targets = await createTargets(tenant, receiver.url);
  testing = await beside.createTesting(lives.url);

  let seen = 0;
  const tick = () => seen++;
  const receiving = startVisits(receiver, SEED, tick);
  visits = receiving.visits;
  publishing = startPublishing(lives.url, tenant, targets, SEED, tick);
  try {
    await limited.begin();
    for (const planned of plan.kills) {
      publishing.round = planned.round;
      if (planned.kind === "starting") {
        await lives.killStarting(planned);
      } else {
        await lives.run();
        await lives.killRunning(planned, publishing, receiving.watch);
      }
    }
    await lives.run();
    await publishing.stop();
  } catch (error) {
    throw new Error(story(), { cause: error });
  }
}, LIMIT_MS);
afterAll(async () => {
  await lives.relay().stop();
  await Promise.all(
    [receiver, ...[blocked, limited, suspended, testing].map((it) => it.receiver)].map((it) => it.close()),
  );
});

test("a blocked lane is still blocked by the same head, and goes on when that is skipped", async () => {
  const { tenant, endpointId, lane } = blocked;
  expect(await readLane(tenant, endpointId)).toEqual(lane);
  const { delivery_id } = lane.heads[0];
  await expectStatus(200, tenant.admin.post(`/v1/endpoints/${endpointId}/lane/skip`, { delivery_id }));
  await blocked.receiver.waitFor(4);
  expect(blocked.receiver.received.map(numberOf)).toEqual(range(4));
});

test("a suspension outlives crashes of the relay, and so does what it holds", { timeout: LIMIT_MS }, async () => {
  const { tenant, deliveryId } = suspended;
  await expectStatus(403, tenant.admin.post("/v1/events", { type: "t", source: "orders", payload: 1 }));
  expect(await readDelivery(tenant, deliveryId)).toMatchObject({ status: "pending", attempt_count: 1 });
  await beside.setStatus(lives.url, tenant, "active");
  // Its doorbell died with a process: whatever brings it back is bounded by the watchdog's patience.
  expect(await terminalDelivery(tenant, deliveryId, LEASE_PATIENCE_MS)).toMatchObject({
    status: "succeeded",
    attempt_count: 2,
  });
});

test("while a test hangs, deliveries in order go on; when its relay is killed, it ends and is not made again", async () => {
  const { tenant, answered, deliveryId } = testing;
  expect(await answered).toBeNull();
  await beside.expectDelivered(tenant, 1, 3);
  expect(await terminalDelivery(tenant, deliveryId, LEASE_PATIENCE_MS)).toMatchObject({
    status: "dead_letter",
    final_outcome: "abandoned",
    attempts: [{ error_class: "abandoned" }],
  });
  expect(testing.receiver.received.filter(beside.isTest)).toHaveLength(1);
});

test("a rate holds across restarts, of which it knows nothing", { timeout: LIMIT_MS }, async () => {
  const { tenant, deliveryIds } = limited;
  const deliveries = await Promise.all(deliveryIds.map((id) => terminalDelivery(tenant, id, LEASE_PATIENCE_MS)));
  for (const { status, attempts } of deliveries) {
    expect({ status, attempts }).toMatchObject({ status: "succeeded" });
    for (const attempt of attempts.slice(0, -1)) expect(attempt).toMatchObject({ error_class: "abandoned" });
  }
  const arrivals = limited.receiver.received.map(({ at }) => at);
  expect(lives.kills.some(({ at }) => at > arrivals[0]! && at < arrivals.at(-1)!)).toBe(true);
  expect(new Set(limited.receiver.received.map(numberOf)).size).toBe(beside.LIMITED_EVENTS);
  expect(shortestSpanMs(limited.receiver.received.map(inTime), beside.RATE)).toBeGreaterThanOrEqual(1_000);
});

test(
  "whenever it is killed, nothing it has acknowledged is lost, doubled or out of order, and every request is on record",
  { timeout: LIMIT_MS },
  async () => {
    while (await hasOpen(tenant)) await sleep(POLL_MS);
    await lives.relay().stop();
    const ledger = readLedger(lives.stateDir, tenant.id);
    const { published } = publishing;
    const killedAt = lives.kills.map(({ at }) => at);
    const verdict = judge({ published, visits, ledger, targets, killedAt, timeoutMs: TIMEOUT_MS });
    const struck = lives.kills.filter((kill) => kill.struck).length;
    console.log(
      `kills: seed ${SEED}, ${ROUNDS} rounds, ${lives.kills.length} kills (${struck} as planned), ${published.length} events, ` +
        `${visits.length} requests, ${verdict.lost} lost, ${verdict.doubledRows} doubled, ${verdict.doubled} requests repeated, ` +
        `${verdict.doubledAfterAnswer} of them after an answer (at most ${verdict.answerToKillMs} ms before the kill), ` +
        `${verdict.abandoned} attempts abandoned, ${verdict.outOfOrder} of ${verdict.ordered} out of order, ` +
        `${publishing.refused.length} publishes refused`,
    );
    expect(verdict.problems, story()).toEqual([]);
    expect(verdict).toMatchObject({ lost: 0, doubledRows: 0, outOfOrder: 0 });
    expect(publishing.refused, story()).toEqual([]);
  },
);
