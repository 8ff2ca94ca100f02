import { expect, test } from "vitest";
import { parseDeliveryId } from "../../../src/core/ids.ts";
import { createActLedger } from "../../../src/storage/ledger/act.ts";
import { createLaneLedger } from "../../../src/storage/ledger/lane.ts";
import { createLaneFixture, drain, type LaneFixture } from "./support.ts";

const refOf = (fixture: LaneFixture, id: string) => {
  const ref = parseDeliveryId(id);
  if (!ref.ok) throw new Error(id);
  return { tenantId: fixture.tenant.id, ...ref.value };
};
const act = (fixture: LaneFixture) => createActLedger(fixture.db);
const laneOf = async (fixture: LaneFixture) =>
  (await fixture.tenant.api.get(`/v1/endpoints/${fixture.endpointId}/lane`)).body;
const blocksOf = async (fixture: LaneFixture) => {
  const { results } = await fixture.db
    .prepare("select lane_key from lane_block where endpoint_id = ? order by lane_key")
    .bind(fixture.endpointId)
    .all<{ lane_key: string }>();
  return results.map(({ lane_key }) => lane_key);
};
const replay = (fixture: LaneFixture, id: string) =>
  act(fixture).insertReplay(fixture.tenant.id, refOf(fixture, id), null, fixture.now());
const sentNames = (fixture: LaneFixture) => fixture.sent.map(({ name }) => name);

/** A strict lane of four that blocks, and where those called in `bad` are rejected. */
async function createBlocking(bad: Set<string>, endpoint: Record<string, unknown> = {}) {
  const fixture = await createLaneFixture({ on_exhausted: "block", ...endpoint });
  fixture.answer = ({ name }) => new Response(null, { status: bad.has(name) ? 400 : 200 });
  const ids = await fixture.publishAll(["k/0", "k/1", "k/2", "k/3"]);
  const lane = fixture.createLane();
  await lane.run();
  return { fixture, ids, lane };
}

test("a dead head stops its lane, is shown as what blocks it, and nothing wakes the lane again", async () => {
  const { fixture, ids, lane } = await createBlocking(new Set(["k/1"]));
  expect(sentNames(fixture)).toEqual(["k/0", "k/1"]);
  expect(await lane.run()).toBeNull();
  expect(await laneOf(fixture)).toMatchObject({
    state: "blocked",
    depth: 2,
    heads: [{ delivery_id: ids[1], status: "dead_letter", depth: 2 }],
  });
});

test("a skip lets the lane go on; a second bad head stops it again; only the blocked head can be skipped", async () => {
  const { fixture, ids, lane } = await createBlocking(new Set(["k/1", "k/2"]));
  const skip = (i: number) => act(fixture).skipHead(fixture.tenant.id, refOf(fixture, ids[i]!), fixture.now());
  expect(await skip(0)).toBe(false);
  expect(await skip(2)).toBe(false);
  expect(await skip(1)).toBe(true);
  expect(await skip(1)).toBe(false);
  await lane.run();
  expect(sentNames(fixture)).toEqual(["k/0", "k/1", "k/2"]);
  expect(await skip(2)).toBe(true);
  await lane.run();
  expect(sentNames(fixture)).toEqual(["k/0", "k/1", "k/2", "k/3"]);
  // The skipped stay dead letters.
  expect((await fixture.rows()).filter(({ status }) => status === "dead_letter")).toHaveLength(2);
});

test("a replay of the blocked head, and only that, goes to the front and lets the lane go on", async () => {
  const bad = new Set(["k/1"]);
  const { fixture, ids, lane } = await createBlocking(bad);
  bad.clear();
  // Another replay joins at the tail and leaves the lane blocked.
  expect(await replay(fixture, ids[0]!)).toBe(1);
  await lane.run();
  expect(sentNames(fixture)).toEqual(["k/0", "k/1"]);
  expect(await replay(fixture, ids[1]!)).toBe(1);
  expect(await blocksOf(fixture)).toEqual([]);
  await lane.run();
  expect(sentNames(fixture)).toEqual(["k/0", "k/1", "k/1", "k/2", "k/3", "k/0"]);
});

test("a replay of the blocked head that dies too blocks the lane anew, and can be replayed or skipped in its turn", async () => {
  const bad = new Set(["k/1"]);
  const { fixture, ids, lane } = await createBlocking(bad);
  expect(await replay(fixture, ids[1]!)).toBe(1);
  await lane.run();
  expect(sentNames(fixture)).toEqual(["k/0", "k/1", "k/1"]);
  const { heads } = await laneOf(fixture);
  expect(heads).toMatchObject([{ delivery_id: `${ids[1]}1`, status: "dead_letter" }]);
  // The first is no blocked head any more: its replay is one like any other.
  expect(await replay(fixture, ids[1]!)).toBe(2);
  expect(await blocksOf(fixture)).toEqual([""]);
  bad.clear();
  expect(await replay(fixture, heads[0].delivery_id)).toBe(3);
  await lane.run();
  expect(sentNames(fixture).slice(3)).toEqual(["k/1", "k/2", "k/3", "k/1"]);
});

test("with keys only the dead head's key stops, and a delivery without a key stops nobody", async () => {
  const fixture = await createLaneFixture({ ordering_mode: "keyed", on_exhausted: "block" });
  fixture.answer = ({ name }) => new Response(null, { status: ["a/0", "/0"].includes(name) ? 400 : 200 });
  await fixture.publishAll(["a/0", "a/1", "b/0", "b/1", "/0", "/1"]);
  await fixture.createLane().run();
  expect(await blocksOf(fixture)).toEqual(["a"]);
  expect(sentNames(fixture).toSorted()).toEqual(["/0", "/1", "a/0", "b/0", "b/1"]);
});

test("an endpoint that advances is not blocked by a dead head", async () => {
  const { fixture } = await createBlocking(new Set(["k/1"]), { on_exhausted: "advance" });
  expect(await blocksOf(fixture)).toEqual([]);
  expect(sentNames(fixture)).toEqual(["k/0", "k/1", "k/2", "k/3"]);
});

test("of the ends without an attempt an expired or dead head blocks, a failed or cancelled one does not", async () => {
  for (const [status, blocks] of [
    ["expired", true],
    ["dead_letter", true],
    ["failed", false],
  ] as const) {
    const fixture = await createLaneFixture({ on_exhausted: "block" });
    const [id] = await fixture.publishAll(["k/0", "k/1"]);
    const head = { ...refOf(fixture, id!), endpoint: { revision: 1 } };
    await createLaneLedger(fixture.db).endHead(head, { status, finalOutcome: status }, fixture.now());
    expect(await blocksOf(fixture), status).toEqual(blocks ? [""] : []);
    await fixture.createLane().run();
    expect(sentNames(fixture), status).toEqual(blocks ? [] : ["k/1"]);
  }
  const fixture = await createLaneFixture({ on_exhausted: "block" });
  const [id] = await fixture.publishAll(["k/0", "k/1"]);
  expect(await act(fixture).cancelDelivery(fixture.tenant.id, refOf(fixture, id!), fixture.now())).toBe(true);
  await fixture.createLane().run();
  expect(sentNames(fixture)).toEqual(["k/1"]);
});

test("a head that became too old while it backed off expires and blocks, and the next expires only on its own account", async () => {
  const policy = { delays_seconds: [3_600], jitter: 0, max_age_seconds: 60 };
  const fixture = await createLaneFixture({ on_exhausted: "block", retry_policy: policy });
  fixture.answer = ({ name }) => new Response(null, { status: name === "k/0" ? 503 : 200 });
  const [id] = await fixture.publishAll(["k/0", "k/1"]);
  const lane = fixture.createLane();
  const wakeAt = (await lane.run())!;
  fixture.forward(wakeAt - fixture.now() + 1);
  expect(await lane.run()).toBeNull();
  expect((await fixture.rows()).map(({ name, status }) => `${name} ${status}`).toSorted()).toEqual([
    "k/0 expired",
    "k/1 pending",
  ]);
  // Blocked, its clock does not run, for as long as the event is kept.
  fixture.forward(3_600_000);
  await lane.run();
  expect(await act(fixture).skipHead(fixture.tenant.id, refOf(fixture, id!), fixture.now())).toBe(true);
  await drain(fixture, () => [lane]);
  expect(sentNames(fixture)).toEqual(["k/0", "k/1"]);
});

test("a claim cannot pass a block, whoever makes it", async () => {
  const { fixture } = await createBlocking(new Set(["k/1"]));
  const ref = refOf(fixture, (await fixture.tenant.api.get("/v1/deliveries?status=pending")).body.data.at(-1).id);
  const claim = {
    ...ref,
    attemptNumber: 1,
    token: "eager",
    endpointRevision: 1,
    signingSecretIds: [],
    workerId: "w",
    relayRegion: null,
    leaseMs: 1_000,
  };
  expect(await createLaneLedger(fixture.db).claimHead(claim, 0, fixture.now())).toBe(false);
  await act(fixture).skipHead(
    fixture.tenant.id,
    refOf(fixture, (await laneOf(fixture)).heads[0].delivery_id),
    fixture.now(),
  );
  expect(await createLaneLedger(fixture.db).claimHead(claim, 0, fixture.now())).toBe(true);
});

test.each<[string, (fixture: LaneFixture) => Promise<unknown>, Record<string, unknown>]>([
  [
    "a pause",
    ({ tenant, endpointId }) => tenant.api.post(`/v1/endpoints/${endpointId}/pause`, {}),
    { retry_policy: { delays_seconds: [49], jitter: 0, max_age_seconds: 60 } },
  ],
  [
    "lifting the limit on holding",
    ({ tenant, endpointId }) => tenant.api.patch(`/v1/endpoints/${endpointId}`, { max_head_hold_seconds: null }),
    { max_head_hold_seconds: 60, retry_policy: { delays_seconds: [49], jitter: 0 } },
  ],
])(
  "a head that was read before %s was answered is not ended by what was true then",
  async (_what, change, endpoint) => {
    const fixture = await createLaneFixture({ ordering_mode: "keyed", concurrency_cap: 1, ...endpoint });
    fixture.answer = async ({ name, attempt }) => {
      if (name === "a/0" && attempt === 1) {
        await change(fixture);
        fixture.forward(15_000);
      }
      return new Response(null, { status: name === "a/0" ? 200 : 503 });
    };
    await fixture.publishAll(["b/0"]);
    const lane = fixture.createLane();
    await lane.run();
    fixture.forward(50_000);
    // b/0 is due, and waits for the place that a/0 has.
    await fixture.publishAll(["a/0"]);
    await lane.run();
    const rows = await fixture.rows();
    expect(rows.map(({ name, status }) => `${name} ${status}`).toSorted()).toEqual(["a/0 succeeded", "b/0 pending"]);
  },
);

test("of two heads of different keys that die after their lane became one, each has to be let go", async () => {
  const fixture = await createLaneFixture({ ordering_mode: "keyed", on_exhausted: "block" });
  const answers: (() => void)[] = [];
  fixture.answer = ({ name }) =>
    name === "c/0"
      ? new Response("ok")
      : new Promise((answer) => answers.push(() => answer(new Response(null, { status: 400 }))));
  const ids = await fixture.publishAll(["a/0", "b/0"]);
  const lane = fixture.createLane();
  const done = lane.run();
  await expect.poll(() => answers.length).toBe(2);
  const { tenant, endpointId } = fixture;
  expect((await tenant.api.patch(`/v1/endpoints/${endpointId}`, { ordering_mode: "strict" })).status).toBe(200);
  await fixture.publishAll(["c/0"]);
  for (const answer of answers) answer();
  await done;
  const skip = (id: string) => act(fixture).skipHead(tenant.id, refOf(fixture, id), fixture.now());
  expect((await laneOf(fixture)).heads.map((head: any) => head.delivery_id).toSorted()).toEqual(ids.toSorted());
  expect(await skip(ids[0]!)).toBe(true);
  await lane.run();
  expect(sentNames(fixture).toSorted()).toEqual(["a/0", "b/0"]);
  expect(await skip(ids[1]!)).toBe(true);
  await lane.run();
  expect(sentNames(fixture).toSorted()).toEqual(["a/0", "b/0", "c/0"]);
});

test("a dead head that has expired is not shown and stops its lane no more, though its row is still there", async () => {
  const { fixture, ids, lane } = await createBlocking(new Set(["k/1"]));
  await fixture.db
    .prepare("update delivery set expires_at = 1 where tenant_id = ? and event_id = ?")
    .bind(fixture.tenant.id, refOf(fixture, ids[1]!).eventId)
    .run();
  const { state, heads } = await laneOf(fixture);
  expect(state).not.toBe("blocked");
  expect(heads).toMatchObject([{ delivery_id: ids[2] }]);
  await lane.run();
  expect(sentNames(fixture)).toEqual(["k/0", "k/1", "k/2", "k/3"]);
});

test("an ordering key that reads like another event's id shares nothing with that event", async () => {
  const fixture = await createLaneFixture({ ordering_mode: "keyed" });
  fixture.answer = ({ name }) => new Response(null, { status: name === "/0" ? 503 : 200 });
  const [id] = await fixture.publishAll(["/0"]);
  await fixture.publishAll([`${refOf(fixture, id!).eventId}/0`]);
  await fixture.createLane().run();
  expect((await fixture.rows()).map(({ status }) => status).toSorted()).toEqual(["pending", "succeeded"]);
});

test("time for which a head was paused does not count when its endpoint is disabled then; time from there on does", async () => {
  const policy = { delays_seconds: [30], jitter: 0, max_age_seconds: 60 };
  const fixture = await createLaneFixture({ retry_policy: policy });
  fixture.answer = () => new Response(null, { status: 503 });
  await fixture.publishAll(["k/0"]);
  const lane = fixture.createLane();
  await lane.run();
  const { tenant, endpointId } = fixture;
  await act(fixture).pauseEndpoint(tenant.id, endpointId, fixture.now(), fixture.now());
  fixture.forward(3_600_000);
  await act(fixture).disableEndpoint(tenant.id, endpointId, "operator", fixture.now());
  const statusAfter = async (ms: number) => {
    fixture.forward(ms);
    await lane.run();
    return (await fixture.rows())[0]!["status"];
  };
  expect(await statusAfter(58_000)).toBe("pending");
  expect(await statusAfter(4_000)).toBe("expired");
});
