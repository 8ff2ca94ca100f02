import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { EndpointLane } from "../../../src/objects/endpoint-lane.ts";
import { cancelAll, createLaneFixture, type LaneFixture } from "./support.ts";

const { LANES } = env as Env;
let answer: (name: string) => Promise<Response> | Response;
let requested: string[];
beforeEach(() => {
  requested = [];
  answer = () => new Response("ok");
  vi.spyOn(globalThis, "fetch").mockImplementation(async (_, init) => {
    const { name } = JSON.parse(new TextDecoder().decode(init!.body as Uint8Array)).payload;
    // A lane of another file's may go on at any time: the watchdog is a real one.
    if (!name?.startsWith("object/")) return new Response("ok");
    requested.push(name);
    return answer(name);
  });
});
afterEach(() => vi.restoreAllMocks());

const laneOf = ({ tenant, endpointId }: LaneFixture, generation = 0) =>
  LANES.getByName(`lane:${tenant.shard}:${tenant.id}:${endpointId}:${generation}`) as DurableObjectStub<EndpointLane>;
const alarmOf = (stub: DurableObjectStub<EndpointLane>) =>
  runInDurableObject(stub, (_, { storage }) => storage.getAlarm());

/** Holds answers back. One context may not settle another's promise, so those who wait look for themselves. */
function createGate() {
  const gate = { isOpen: false };
  return {
    open: () => void (gate.isOpen = true),
    async answer() {
      while (!gate.isOpen) await scheduler.wait(2);
      return new Response("ok");
    },
  };
}

const names = (count: number) => Array.from({ length: count }, (_, n) => `object/${n}`);

test("woken, an object brings its lane to the end in order; then it asks for no alarm", async () => {
  const fixture = await createLaneFixture();
  await fixture.publishAll(names(20));
  const lane = laneOf(fixture);
  await lane.wake();
  await expect.poll(() => fixture.openCount()).toBe(0);
  expect(requested).toEqual(names(20));
  // The dead-man alarm of its requests fires once more, finds nothing open, and is not set again.
  await runDurableObjectAlarm(lane);
  expect(await alarmOf(lane)).toBeNull();
  expect(await runDurableObjectAlarm(lane)).toBe(false);
});

test("an object of a lane in which nothing is open sets no alarm at all", async () => {
  const fixture = await createLaneFixture();
  const lane = laneOf(fixture);
  await lane.wake();
  await runInDurableObject(lane, () => scheduler.wait(50));
  expect(await alarmOf(lane)).toBeNull();
});

test("a wake answers at once, however long the receiver takes", async () => {
  const fixture = await createLaneFixture();
  await fixture.publishAll(names(1));
  const gate = createGate();
  answer = gate.answer;
  const lane = laneOf(fixture);
  await lane.wake();
  await expect.poll(() => requested).toEqual(["object/0"]);
  await lane.wake();
  // While it is out, an alarm stands no later than the dead man's minute.
  await expect.poll(() => alarmOf(lane)).not.toBeNull();
  expect((await alarmOf(lane))! - Date.now()).toBeLessThanOrEqual(60_000);
  gate.open();
  await expect.poll(() => fixture.openCount()).toBe(0);
});

test("a head that backs off is attempted by the alarm alone", async () => {
  const fixture = await createLaneFixture({ retry_policy: { delays_seconds: [3], jitter: 0 } });
  await fixture.publishAll(names(2));
  answer = () => new Response(null, { status: requested.length === 1 ? 503 : 200 });
  await laneOf(fixture).wake();
  await expect.poll(() => fixture.openCount()).toBe(0);
  expect(requested).toEqual(["object/0", "object/0", "object/1"]);
});

test("an alarm that comes too early finds the head still waiting, and stands again for when it is due", async () => {
  const fixture = await createLaneFixture({ retry_policy: { delays_seconds: [30], jitter: 0 } });
  await fixture.publishAll(names(2));
  answer = () => new Response(null, { status: 503 });
  const lane = laneOf(fixture);
  await lane.wake();
  await expect.poll(() => requested).toEqual(["object/0"]);
  const dueAt = async () => (await fixture.rows())[0]!["next_attempt_at"];
  await expect.poll(async () => (await fixture.rows())[0]!["status"]).toBe("pending");
  await expect.poll(() => alarmOf(lane)).toBe(await dueAt());
  await runDurableObjectAlarm(lane);
  expect(requested).toEqual(["object/0"]);
  await expect.poll(() => alarmOf(lane)).toBe(await dueAt());
  await cancelAll(fixture);
});

test("evicted in the middle of a lane, an object goes on from the ledger at its next wake or alarm", async () => {
  for (const by of ["wake", "alarm"] as const) {
    const fixture = await createLaneFixture({ retry_policy: { delays_seconds: [3_600], jitter: 0 } });
    requested = [];
    await fixture.publishAll(names(3));
    answer = (name) => new Response(null, { status: name === "object/1" && requested.length === 2 ? 503 : 200 });
    const lane = laneOf(fixture);
    await lane.wake();
    await expect
      .poll(async () => (await fixture.rows()).find(({ name }) => name === "object/1")!["failure_count"])
      .toBe(1);
    await expect.poll(() => alarmOf(lane)).not.toBeNull();
    await evictDurableObject(lane);
    await fixture.db
      .prepare("update delivery set next_attempt_at = 1 where endpoint_id = ? and terminal_at is null")
      .bind(fixture.endpointId)
      .run();
    if (by === "wake") await lane.wake();
    else expect(await runDurableObjectAlarm(lane)).toBe(true);
    await expect.poll(() => fixture.openCount()).toBe(0);
    expect(requested, by).toEqual(["object/0", "object/1", "object/1", "object/2"]);
  }
});

test("an object whose alarm was lost sets it again at its next wake", async () => {
  const fixture = await createLaneFixture({ retry_policy: { delays_seconds: [3_600], jitter: 0 } });
  await fixture.publishAll(names(1));
  answer = () => new Response(null, { status: 503 });
  const lane = laneOf(fixture);
  await lane.wake();
  await expect.poll(() => alarmOf(lane)).not.toBeNull();
  await runInDurableObject(lane, (_, { storage }) => storage.deleteAlarm());
  await lane.wake();
  await expect.poll(() => alarmOf(lane)).not.toBeNull();
});

test("a lane moved under traffic goes on in its new object; the old one, woken late, starts nothing", async () => {
  const fixture = await createLaneFixture();
  await fixture.publishAll(names(6));
  const gate = createGate();
  answer = (name) => (name === "object/2" ? gate.answer() : new Response("ok"));
  await laneOf(fixture).wake();
  await expect.poll(() => requested).toEqual(names(3));
  expect((await fixture.tenant.api.post(`/v1/endpoints/${fixture.endpointId}/lane/move`)).status).toBe(200);
  await laneOf(fixture, 1).wake();
  await laneOf(fixture, 0).wake();
  expect(requested).toEqual(names(3));
  gate.open();
  await expect.poll(() => fixture.openCount()).toBe(0);
  expect(requested).toEqual(names(6));
  expect((await fixture.rows()).every(({ attempt_count }) => attempt_count === 1)).toBe(true);
});
