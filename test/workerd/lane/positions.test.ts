import { expect, test } from "vitest";
import { parseDeliveryId } from "../../../src/core/ids.ts";
import { DEFAULT_RETRY_POLICY } from "../../../src/core/retry-policy.ts";
import { createActLedger } from "../../../src/storage/ledger/act.ts";
import { createRerouteLedger } from "../../../src/storage/ledger/reroute.ts";
import { cancelAll, createLaneFixture, drain, reroute, routingOf, type LaneFixture } from "./support.ts";

const IN_FLIGHT = -(2 ** 40);

/**
 * Open rows as `name key position`, in the order of their lanes; an event's own lane is written `own`, and the place of what
 * was in flight when it was moved in brackets.
 */
async function lanesOf(fixture: LaneFixture): Promise<string[]> {
  return (await fixture.rows())
    .filter(({ terminal_at }) => terminal_at === null)
    .map((row) => {
      const key = row["lane_key"] === ` ${row["event_id"]}` ? "own" : row["lane_key"];
      const position = row["lane_position"];
      const place = position !== null && position <= IN_FLIGHT ? `(${position - IN_FLIGHT})` : position;
      return `${row["name"]}${row["replay_no"] > 0 ? "'" : ""} ${key} ${place}`;
    });
}

const end = (fixture: LaneFixture, ...eventIds: string[]) =>
  fixture.db
    .prepare(
      `update delivery set status = 'succeeded', terminal_at = 1, next_attempt_at = null
       where endpoint_id = ? and event_id in (select value from json_each(?))`,
    )
    .bind(fixture.endpointId, JSON.stringify(eventIds))
    .run();
const refOf = (id: string) => {
  const ref = parseDeliveryId(id);
  if (!ref.ok) throw new Error(id);
  return ref.value;
};
const claimOf = (fixture: LaneFixture, id: string) => ({
  tenantId: fixture.tenant.id,
  ...refOf(id),
  attemptNumber: 1,
  token: "mine",
  endpointRevision: 1,
  signingSecretIds: [],
  workerId: "w",
  relayRegion: null,
  leaseMs: 45_000,
});

test("a batch takes its places in a strict lane in array order, behind all that is open", async () => {
  const fixture = await createLaneFixture();
  const ids = await fixture.publishAll(["a/0", "b/0", "/0"]);
  expect(await lanesOf(fixture)).toEqual(["a/0  1", "b/0  2", "/0  3"]);
  await end(fixture, refOf(ids[0]!).eventId);
  await fixture.publishAll(["b/1", "a/1"]);
  expect(await lanesOf(fixture)).toEqual(["b/0  2", "/0  3", "b/1  4", "a/1  5"]);
});

test("with keys each key counts on its own, and an event without one has a lane to itself", async () => {
  const fixture = await createLaneFixture({ ordering_mode: "keyed" });
  await fixture.publishAll(["a/0", "b/0", "/0", "a/1", "/1", "b/1"]);
  await fixture.publishAll(["a/2"]);
  expect((await lanesOf(fixture)).toSorted()).toEqual(
    ["a/0 a 1", "a/1 a 2", "a/2 a 3", "b/0 b 1", "b/1 b 2", "/0 own 1", "/1 own 1"].toSorted(),
  );
});

test("an unordered endpoint with a cap has a lane for each event; one without has none, and queues deliver", async () => {
  const capped = await createLaneFixture({ ordering_mode: "unordered", concurrency_cap: 2 });
  await capped.publishAll(["a/0", "a/1"]);
  expect(await lanesOf(capped)).toEqual(["a/0 own 1", "a/1 own 1"]);
  const free = await createLaneFixture({ ordering_mode: "unordered" });
  await free.publishAll(["a/0"]);
  expect(await lanesOf(free)).toEqual(["a/0 null null"]);
});

test("publishes at once take different places, each batch's in a row", async () => {
  const fixture = await createLaneFixture();
  const batches = Array.from({ length: 5 }, (_, b) => Array.from({ length: 4 }, (_name, n) => `b${b}/${n}`));
  await Promise.all(batches.map((names) => fixture.publishAll(names)));
  const rows = await fixture.rows();
  expect(rows.map((row) => row["lane_position"])).toEqual(Array.from({ length: 20 }, (_, n) => n + 1));
  for (let i = 0; i < 20; i += 4) {
    const inARow = rows.slice(i, i + 4).map((row) => row["name"] as string);
    expect(inARow).toEqual(batches.find(([first]) => first === inARow[0]));
  }
});

test("a replay joins at the tail", async () => {
  const fixture = await createLaneFixture();
  const ids = await fixture.publishAll(["k/0", "k/1", "k/2"]);
  await end(fixture, refOf(ids[0]!).eventId);
  const { insertReplay } = createActLedger(fixture.db);
  expect(await insertReplay(fixture.tenant.id, refOf(ids[0]!), DEFAULT_RETRY_POLICY, fixture.now())).toBe(1);
  expect(await lanesOf(fixture)).toEqual(["k/1  2", "k/2  3", "k/0'  4"]);
});

test("what is born failed at a disabled endpoint takes no place", async () => {
  const fixture = await createLaneFixture();
  await fixture.publishAll(["k/0"]);
  await createActLedger(fixture.db).disableEndpoint(fixture.tenant.id, fixture.endpointId, "operator", fixture.now());
  await fixture.publishAll(["k/1"]);
  expect(await lanesOf(fixture)).toEqual(["k/0  1"]);
  expect((await fixture.rows()).map(({ status }) => status).toSorted()).toEqual(["failed", "pending"]);
});

test("from mode to mode open deliveries take their places by when they were accepted; ended ones stay as they were", async () => {
  const fixture = await createLaneFixture({ ordering_mode: "unordered" });
  const ids = await fixture.publishAll(["a/0", "b/0", "a/1"]);
  await fixture.publishAll(["/0", "b/1"]);
  await end(fixture, refOf(ids[0]!).eventId);

  expect(await reroute(fixture, "strict", "lane")).toEqual([]);
  expect(await lanesOf(fixture)).toEqual(["b/0  -3", "a/1  -2", "/0  -1", "b/1  0"]);
  await fixture.publishAll(["a/2"]);
  expect(await reroute(fixture, "keyed", "lane")).toEqual([]);
  expect((await lanesOf(fixture)).toSorted()).toEqual(
    ["a/1 a -1", "a/2 a 0", "b/0 b -1", "b/1 b 0", "/0 own 0"].toSorted(),
  );
  expect(await reroute(fixture, "strict", "lane")).toEqual([]);
  expect(await lanesOf(fixture)).toEqual(["b/0  -4", "a/1  -3", "/0  -2", "b/1  -1", "a/2  0"]);

  const due = await reroute(fixture, "unordered", "queue");
  expect(due).toHaveLength(5);
  const queued = ["b/0", "a/1", "/0", "b/1", "a/2"].map((name) => `${name} null null`);
  expect((await lanesOf(fixture)).toSorted()).toEqual(queued.toSorted());
  const ended = (await fixture.rows()).find(({ terminal_at }) => terminal_at !== null)!;
  expect(ended).toMatchObject({ name: "a/0", lane_key: null, lane_position: null });
});

test("made strict, an endpoint makes no request while one is under way that was begun before", async () => {
  const fixture = await createLaneFixture({ ordering_mode: "unordered" });
  const [, second] = await fixture.publishAll(["k/0", "k/1", "k/2"]);
  const claim = claimOf(fixture, second!);
  expect((await fixture.deps.claimDeliveries([claim], fixture.now())).size).toBe(1);
  await reroute(fixture, "strict", "lane");
  expect(await lanesOf(fixture)).toEqual(["k/1  (-1)", "k/0  -2", "k/2  0"]);
  const lane = fixture.createLane();
  // The request may end without a word to the lane, which looks again before the lease does.
  expect((await lane.run())! - fixture.now()).toBeLessThan(10_000);
  expect(fixture.sent).toEqual([]);
  await end(fixture, claim.eventId);
  await lane.run();
  expect(fixture.sent.map(({ name }) => name)).toEqual(["k/0", "k/2"]);
});

test("what is in flight stands before all others until it ends, and what joins comes behind what waits", async () => {
  const fixture = await createLaneFixture({ ordering_mode: "unordered" });
  const [, second, , fourth] = await fixture.publishAll(["k/0", "k/1", "j/0", "j/1"]);
  const claims = [fourth!, second!].map((id) => ({ ...claimOf(fixture, id), token: id }));
  expect((await fixture.deps.claimDeliveries(claims, fixture.now())).size).toBe(2);
  await reroute(fixture, "strict", "lane");
  expect(await lanesOf(fixture)).toEqual(["k/1  (-2)", "j/1  (0)", "k/0  -3", "j/0  -1"]);
  await reroute(fixture, "keyed", "lane");
  expect(await lanesOf(fixture)).toEqual(["j/1 j (0)", "j/0 j -1", "k/1 k (0)", "k/0 k -1"]);
  await end(fixture, ...(await fixture.rows()).map((row) => (row["status"] === "pending" ? row["event_id"] : "")));
  await fixture.publishAll(["k/2", "k/3"]);
  expect((await lanesOf(fixture)).filter((row) => row.startsWith("k"))).toEqual(["k/1 k (0)", "k/2 k 1", "k/3 k 2"]);
  await cancelAll(fixture);
});

test("what is in flight keeps token, lease and number through every move, and its end counts", async () => {
  const fixture = await createLaneFixture({ ordering_mode: "unordered" });
  const [first] = await fixture.publishAll(["k/0", "k/1"]);
  const claim = claimOf(fixture, first!);
  expect((await fixture.deps.claimDeliveries([claim], fixture.now())).size).toBe(1);
  const stateOf = async () => {
    const row = (await fixture.rows()).find(({ name }) => name === "k/0")!;
    return [row["status"], row["token"], row["locked_until"], row["attempt_count"], row["next_attempt_at"]];
  };
  const before = await stateOf();
  for (const [mode, route] of [
    ["strict", "lane"],
    ["keyed", "lane"],
    ["unordered", "queue"],
    ["strict", "lane"],
  ] as const) {
    await reroute(fixture, mode, route);
    expect(await stateOf()).toEqual(before);
  }
  // In a lane it is the head, so nothing passes it.
  const lane = fixture.createLane();
  await lane.run();
  expect(fixture.sent).toEqual([]);
  const attempt = {
    respondedAt: fixture.now(),
    latencyMs: 1,
    statusCode: 200,
    outcomeClass: "success",
    errorClass: null,
    responseBodySha256: null,
    responseHeadersJson: null,
    partnerRequestId: null,
  };
  const delivery = { status: "succeeded" as const, finalOutcome: "delivered" };
  await fixture.deps.closeAttempts([{ ...claim, attempt, delivery, disable: null, clock: null }]);
  await drain(fixture, () => [lane]);
  expect(fixture.sent.map(({ name }) => name)).toEqual(["k/1"]);
});

test("a move takes held deliveries with it", async () => {
  const fixture = await createLaneFixture({ ordering_mode: "unordered" });
  const [first] = await fixture.publishAll(["k/0", "k/1"]);
  const act = createActLedger(fixture.db);
  await act.pauseEndpoint(fixture.tenant.id, fixture.endpointId, fixture.now(), fixture.now());
  const held = { tenantId: fixture.tenant.id, ...refOf(first!), holdUntil: fixture.now() + 60_000 };
  await fixture.deps.holdDeliveries([held]);
  expect(await lanesOf(fixture)).toEqual(["k/1 null null", "k/0 own 0"]);
  await reroute(fixture, "strict", "lane");
  expect(await lanesOf(fixture)).toEqual(["k/0  -1", "k/1  0"]);
  expect((await fixture.rows()).map(({ hold_until }) => hold_until)).toEqual([null, null]);
  const lane = fixture.createLane();
  await lane.run();
  expect(fixture.sent).toEqual([]);
  await act.pauseEndpoint(fixture.tenant.id, fixture.endpointId, null, fixture.now());
  await drain(fixture, () => [lane]);
  expect(fixture.sent.map(({ name }) => name)).toEqual(["k/0", "k/1"]);
});

test.each([
  ["strict", "keyed", "lane"],
  ["keyed", "unordered", "queue"],
  ["unordered", "strict", "lane"],
] as const)(
  "a move by somebody who has not seen the latest change does nothing at all: %s to %s",
  async (from, to, route) => {
    const fixture = await createLaneFixture({ ordering_mode: from, on_exhausted: "block" });
    fixture.answer = () => new Response(null, { status: 400 });
    await fixture.publishAll(["k/0", "k/1"]);
    if (from !== "unordered") await fixture.createLane().run();
    const { tenant, endpointId } = fixture;
    // The latest change takes the endpoint to the very revision that this move would have made.
    expect((await tenant.api.post(`/v1/endpoints/${endpointId}/pause`, {})).status).toBe(200);
    const { revision } = (await tenant.api.get(`/v1/endpoints/${endpointId}`)).body;
    const blocks = () => fixture.db.prepare("select * from lane_block where endpoint_id = ?").bind(endpointId).all();
    const before = [await fixture.rows(), (await blocks()).results];
    const { changeRouting } = createRerouteLedger(fixture.db);
    for (const seen of [revision - 1, revision - 2, revision + 1]) {
      expect(await changeRouting(tenant.id, endpointId, seen, routingOf(to, route), true, 1)).toBeNull();
      expect([await fixture.rows(), (await blocks()).results]).toEqual(before);
    }
  },
);

test("of two changes at once neither leaves anything outside the lane", async () => {
  for (let round = 0; round < 5; round++) {
    const fixture = await createLaneFixture({ ordering_mode: "unordered", concurrency_cap: 5 });
    const { tenant, endpointId } = fixture;
    await tenant.api.post(`/v1/endpoints/${endpointId}/pause`, {});
    await fixture.publishAll(["k/0", "k/1", "k/2"]);
    const changes = [{ ordering_mode: "strict" }, { concurrency_cap: null }];
    const answers = await Promise.all(changes.map((change) => tenant.api.patch(`/v1/endpoints/${endpointId}`, change)));
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    expect(await lanesOf(fixture)).toEqual(["k/0  -2", "k/1  -1", "k/2  0"]);
  }
});

test("who leaves a mode leaves its blocks behind", async () => {
  const fixture = await createLaneFixture({ on_exhausted: "block" });
  fixture.answer = ({ name }) => new Response(null, { status: name === "k/0" ? 400 : 200 });
  await fixture.publishAll(["k/0", "k/1"]);
  const lane = fixture.createLane();
  expect(await lane.run()).toBeNull();
  await reroute(fixture, "keyed", "lane");
  await drain(fixture, () => [lane]);
  expect(fixture.sent.map(({ name }) => name)).toEqual(["k/0", "k/1"]);
});
