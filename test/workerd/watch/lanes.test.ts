import { expect, test } from "vitest";
import { createLaneWalk, wakeLanes } from "../../../src/app/watch/wake-lanes.ts";
import { parseDeliveryId } from "../../../src/core/ids.ts";
import { createActLedger } from "../../../src/storage/ledger/act.ts";
import { createWatchLedger } from "../../../src/storage/ledger/watch.ts";
import { cancelAll, createLaneFixture, type LaneFixture } from "../lane/support.ts";

const refOf = (fixture: LaneFixture, id: string) => {
  const ref = parseDeliveryId(id);
  if (!ref.ok) throw new Error(id);
  return { tenantId: fixture.tenant.id, ...ref.value };
};

test.each(["pause", "disable"])(
  "a lane under %s whose alarm and wake were lost is still woken by the watchdog when its events have expired",
  async (verb) => {
    const fixture = await createLaneFixture();
    const { tenant, endpointId } = fixture;
    const ids = await fixture.publishAll(["k/0"]);
    expect((await tenant.api.post(`/v1/endpoints/${endpointId}/${verb}`, {})).status).toBe(200);
    const inAYear = fixture.now() + 365 * 86_400_000;
    const { lanes } = await createWatchLedger(fixture.db).listOverdueLanes("", inAYear, 1_000_000);
    await createActLedger(fixture.db).cancelDelivery(tenant.id, refOf(fixture, ids[0]!), fixture.now());
    expect(lanes.filter((lane) => lane.endpointId === endpointId)).toHaveLength(1);
  },
);

test("a paused endpoint deleted by a request that died half-way is still owed an end for its lane", async () => {
  const fixture = await createLaneFixture();
  const { tenant, endpointId } = fixture;
  const ids = await fixture.publishAll(["k/0"]);
  expect((await tenant.api.post(`/v1/endpoints/${endpointId}/pause`, {})).status).toBe(200);
  // The first half of the delete; the second is lost, and DELETE again answers 404.
  await fixture.db
    .prepare("update endpoint set deleted_at = ?, revision = revision + 1 where tenant_id = ? and id = ?")
    .bind(fixture.now(), tenant.id, endpointId)
    .run();
  const { lanes } = await createWatchLedger(fixture.db).listOverdueLanes("", fixture.now() + 3_600_000, 1_000_000);
  await createActLedger(fixture.db).cancelDelivery(tenant.id, refOf(fixture, ids[0]!), fixture.now());
  expect(lanes.filter((lane) => lane.endpointId === endpointId)).toHaveLength(1);
});

test("a long lane of which nothing is due is not walked from end to end whenever the watchdog passes", async () => {
  const fixture = await createLaneFixture({
    ordering_mode: "keyed",
    retry_policy: { delays_seconds: [36_000], jitter: 0 },
    concurrency_cap: 100,
  });
  fixture.answer = () => new Response(null, { status: 503 });
  for (let n = 0; n < 640; n += 160) await fixture.publishAll(Array.from({ length: 160 }, (_, i) => `k${n + i}/0`));
  let loads = 0;
  const lane = fixture.createLane("a", 0, (deps) => ({
    ...deps,
    loadLane: (...input) => (loads++, deps.loadLane(...input)),
  }));
  for (let i = 0; i < 50 && fixture.sent.length < 640; i++) {
    const wakeAt = (await lane.run())!;
    fixture.forward(Math.max(0, wakeAt - fixture.now()) + 1);
  }
  fixture.forward(60_000);
  await lane.run();
  loads = 0;
  const { listOverdueLanes } = createWatchLedger(fixture.db);
  const walk = createLaneWalk();
  let isWoken = false;
  const wakeLane = ({ endpointId }: { endpointId: string }) => void (isWoken ||= endpointId === fixture.endpointId);
  // Ten minutes in which nothing comes due.
  for (let i = 0; i < 20; i++) {
    fixture.forward(30_000);
    isWoken = false;
    while (await wakeLanes({ listOverdueLanes, wakeLane }, walk, fixture.now()));
    if (isWoken) await lane.run();
  }
  await cancelAll(fixture);
  expect(loads, "loads in ten minutes in which nothing is due").toBeLessThan(50);
});

test.each([
  ["a pause", "pause", 0],
  ["a disable", "disable", 1],
])(
  "%s keeps the watchdog from a lane whose clocks stand still, and not from one whose clocks run",
  async (_what, verb, count) => {
    const fixture = await createLaneFixture();
    const { tenant, endpointId } = fixture;
    fixture.answer = () => new Response(null, { status: 503 });
    await fixture.publishAll(["k/0"]);
    await fixture.createLane().run();
    expect((await tenant.api.post(`/v1/endpoints/${endpointId}/${verb}`, {})).status).toBe(200);
    const { lanes } = await createWatchLedger(fixture.db).listOverdueLanes("", fixture.now() + 60_000, 1_000_000);
    await cancelAll(fixture);
    expect(lanes.filter((lane) => lane.endpointId === endpointId).map(({ isDue }) => isDue)).toEqual(
      Array.from({ length: count }, () => true),
    );
  },
);
