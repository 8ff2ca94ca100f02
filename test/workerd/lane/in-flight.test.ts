import { expect, test } from "vitest";
import { parseDeliveryId } from "../../../src/core/ids.ts";
import { createActLedger } from "../../../src/storage/ledger/act.ts";
import { cancelAll, createLaneFixture, drain, inFlightOf, reroute, type LaneFixture } from "./support.ts";

const range = (count: number) => Array.from({ length: count }, (_, n) => n);
const refOf = (fixture: LaneFixture, id: string) => {
  const ref = parseDeliveryId(id);
  if (!ref.ok) throw new Error(id);
  return { tenantId: fixture.tenant.id, ...ref.value };
};
const laneOf = async ({ tenant, endpointId }: LaneFixture) =>
  (await tenant.api.get(`/v1/endpoints/${endpointId}/lane`)).body;

const claimOf = (fixture: LaneFixture, id: string) => ({
  ...refOf(fixture, id),
  attemptNumber: 1,
  token: id,
  endpointRevision: 1,
  signingSecretIds: [],
  workerId: "w",
  relayRegion: null,
  leaseMs: 45_000,
});

/** Deliveries that queues have under way; `close` ends the n-th with a status. */
async function createClaimed(count: number, endpoint: Record<string, unknown> = {}) {
  const policy = { delays_seconds: [1], jitter: 0 };
  const fixture = await createLaneFixture({ ordering_mode: "unordered", retry_policy: policy, ...endpoint });
  const ids = await fixture.publishAll(range(count).map((n) => `k/${n}`));
  const claims = ids.map((id) => claimOf(fixture, id));
  expect((await fixture.deps.claimDeliveries(claims, fixture.now())).size).toBe(count);
  const close = (i: number, delivery: any, statusCode: number) =>
    fixture.deps.closeAttempts([
      {
        ...claims[i]!,
        attempt: {
          respondedAt: fixture.now(),
          latencyMs: 1,
          statusCode,
          outcomeClass: statusCode === 503 ? "transient" : "rejected",
          errorClass: statusCode === 503 ? "http_5xx" : "http_4xx",
          responseBodySha256: null,
          responseHeadersJson: null,
          partnerRequestId: null,
        },
        delivery,
        disable: null,
        clock: null,
      },
    ]);
  const fail = (i: number, nextAttemptAt: number) =>
    close(i, { status: "pending", nextAttemptAt, failureCount: 1, relayFaultCount: 0 }, 503);
  return { fixture, ids, claims, close, fail };
}

/** Two that are under way when the endpoint becomes strict. */
async function createInFlight(endpoint: Record<string, unknown> = {}, over: Parameters<typeof reroute>[3] = {}) {
  const claimed = await createClaimed(2, endpoint);
  await reroute(claimed.fixture, "strict", "lane", over);
  return claimed;
}

test.each([
  ["strict", "fails"],
  ["strict", "is given back"],
  ["keyed", "fails"],
  ["keyed", "is given back"],
] as const)(
  "made %s while an older one waits for its retry: what is under way and %s waits for that, and newer ones for both",
  async (mode, how) => {
    const { fixture, claims, fail } = await createClaimed(3);
    const dueAt = fixture.now() + 60_000;
    await fail(0, dueAt);
    await reroute(fixture, mode, "lane");
    await fixture.publishAll(["k/3"]);
    // The newest first: each goes to its own place.
    for (const i of [2, 1]) {
      if (how === "fails") await fail(i, fixture.now());
      else await fixture.deps.giveBack(claims[i]!, fixture.now());
    }
    const lane = fixture.createLane();
    await lane.run();
    expect(fixture.sent).toEqual([]);
    fixture.forward(60_001);
    await drain(fixture, () => [lane]);
    const attempt = how === "fails" ? 2 : 1;
    expect(fixture.sent.map(({ name, attempt: nth }) => [name, nth])).toEqual([
      ["k/0", 2],
      ["k/1", attempt],
      ["k/2", attempt],
      ["k/3", 1],
    ]);
  },
);

test("after an endpoint became strict no attempt starts while another is in flight in its lane", async () => {
  const { fixture, fail } = await createInFlight();
  // k/0's request failed, k/1's is still out.
  await fail(0, fixture.now() + 1_000);
  fixture.forward(2_000);
  let beside: string[] = [];
  fixture.answer = async () => {
    beside = await inFlightOf(fixture);
    return new Response("ok");
  };
  await fixture.createLane().run();
  await cancelAll(fixture);
  expect(beside, "in flight at once in a strict lane").not.toEqual(["k/0", "k/1"]);
});

test("the replay of a blocked head does not start beside a request in flight in the same lane", async () => {
  const { fixture, ids, close } = await createInFlight({}, { onExhausted: "block" });
  await close(0, { status: "dead_letter", finalOutcome: "rejected" }, 400);
  expect(await laneOf(fixture)).toMatchObject({ state: "blocked", heads: [{ delivery_id: ids[0] }] });
  const { insertReplay } = createActLedger(fixture.db);
  expect(await insertReplay(fixture.tenant.id, refOf(fixture, ids[0]!), null, fixture.now())).toBe(1);
  let beside: string[] = [];
  fixture.answer = async () => {
    beside = await inFlightOf(fixture);
    return new Response("ok");
  };
  await fixture.createLane().run();
  await cancelAll(fixture);
  expect(beside, "in flight at once in a strict lane").not.toEqual(["k/0", "k/1"]);
});

test("what is in flight beside a head that waits is looked for again within five seconds, and taken back when its lease ends", async () => {
  const { fixture, fail } = await createInFlight();
  await fail(0, fixture.now() + 1_000);
  fixture.forward(2_000);
  const lane = fixture.createLane();
  const leaseEndsAt = fixture.now() + 50_000;
  // k/1 never answers.
  while (fixture.sent.length < 2 && fixture.now() < leaseEndsAt) {
    const wakeAt = await lane.run();
    expect(wakeAt! - fixture.now()).toBeLessThanOrEqual(5_000);
    fixture.forward(Math.max(0, wakeAt! - fixture.now()) + 1);
  }
  expect(fixture.sent.map(({ name, attempt }) => [name, attempt])).toEqual([
    ["k/0", 2],
    ["k/1", 2],
  ]);
});

test("a head of twenty that are in flight is not claimed beside the last of them", async () => {
  const { fixture, close, fail } = await createClaimed(20);
  await reroute(fixture, "strict", "lane");
  // All but the last have failed.
  for (let n = 0; n < 19; n++) await fail(n, 0);
  const lane = fixture.createLane();
  await lane.run();
  expect(fixture.sent).toEqual([]);
  await close(19, { status: "succeeded", finalOutcome: "delivered" }, 200);
  await lane.run();
  expect(fixture.sent.map(({ name }) => name)).toEqual(range(19).map((n) => `k/${n}`));
});

test.each(["skip", "replay"])(
  "%s: time behind a block does not count: let go, the next head has the age it had",
  async (how) => {
    const { fixture, ids, close, fail } = await createInFlight(
      { retry_policy: { delays_seconds: [10], jitter: 0, max_age_seconds: 60 } },
      { onExhausted: "block" },
    );
    await fail(1, fixture.now() + 10_000);
    await close(0, { status: "dead_letter", finalOutcome: "rejected" }, 400);
    const lane = fixture.createLane();
    fixture.forward(3_600_000);
    await lane.run();
    expect((await fixture.rows()).find(({ name }) => name === "k/1")).toMatchObject({ status: "pending" });
    const act = createActLedger(fixture.db);
    const dead = refOf(fixture, ids[0]!);
    if (how === "skip") expect(await act.skipHead(fixture.tenant.id, dead, fixture.now())).toBe(true);
    else expect(await act.insertReplay(fixture.tenant.id, dead, null, fixture.now())).toBe(1);
    await lane.run();
    const { status } = (await fixture.rows()).find(({ name }) => name === "k/1")!;
    await cancelAll(fixture);
    expect(status).toBe("succeeded");
  },
);

test.each(["skip", "replay", "change of mode"])(
  "%s: it counts for nobody behind the block, not only for the next head, and though that is still in flight",
  async (how) => {
    const { fixture, ids, close, fail } = await createClaimed(4, {
      retry_policy: { delays_seconds: [10], jitter: 0, max_age_seconds: 60 },
    });
    await reroute(fixture, "strict", "lane", { onExhausted: "block" });
    for (const i of [3, 2]) await fail(i, fixture.now() + 10_000);
    await close(0, { status: "dead_letter", finalOutcome: "rejected" }, 400);
    const lane = fixture.createLane();
    fixture.forward(3_600_000);
    await fixture.db
      .prepare("update delivery set locked_until = ?2 where endpoint_id = ?1 and status = 'processing'")
      .bind(fixture.endpointId, fixture.now() + 60_000)
      .run();
    await lane.run();
    const act = createActLedger(fixture.db);
    const dead = refOf(fixture, ids[0]!);
    if (how === "skip") expect(await act.skipHead(fixture.tenant.id, dead, fixture.now())).toBe(true);
    else if (how === "replay") expect(await act.insertReplay(fixture.tenant.id, dead, null, fixture.now())).toBe(1);
    else await reroute(fixture, "keyed", "lane");
    await close(1, { status: "succeeded", finalOutcome: "delivered" }, 200);
    await lane.run();
    const rows = await fixture.rows();
    await cancelAll(fixture);
    const ends = rows.filter(({ replay_no }) => replay_no === 0).map(({ name, status }) => [name, status]);
    expect(Object.fromEntries(ends)).toEqual({
      "k/0": "dead_letter",
      "k/1": "succeeded",
      "k/2": "succeeded",
      "k/3": "succeeded",
    });
  },
);
