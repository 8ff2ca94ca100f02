import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createEndpoint, createTenant, deliveryWhen, expectStatus, terminalDelivery } from "./support/client.ts";
import {
  act,
  answeringAfter,
  holding,
  laneWhen,
  numberOf,
  patchEndpoint,
  publishNumbered,
  QUICK_RETRY,
  range,
  readDelivery,
} from "./support/lanes.ts";
import { withReceiver } from "./support/receiver.ts";
import { shortestSpanMs } from "./support/rate.ts";
import { startRelayProcess, type RelayProcess } from "./support/relay-process.ts";
import { settled, startTraffic, type Attempts, type Published, type Visit } from "./support/traffic.ts";

let relay: RelayProcess;
beforeAll(async () => {
  relay = await startRelayProcess();
});
afterAll(() => relay.stop());

type Settings = { path?: string } & Record<string, unknown>;

/** What an endpoint was set to from a revision on, and when that had been answered. */
interface Era {
  revision: number;
  settings: Settings;
  answeredAtMs: number;
}

const UNORDERED = { ordering_mode: "unordered" };
const STRICT = { ordering_mode: "strict" };
const KEYED = { ordering_mode: "keyed" };
const MOVE = "move";

/** Each case: what the endpoint is at first, then the changes, each after some more traffic. */
const CASES: [title: string, first: Settings, changes: (Settings | typeof MOVE)[]][] = [
  ["unordered to strict and back, twice", UNORDERED, [STRICT, UNORDERED, STRICT, UNORDERED]],
  ["strict to keyed and back", STRICT, [KEYED, STRICT]],
  [
    "URL and mode at once",
    UNORDERED,
    [
      { path: "/b", ...STRICT },
      { path: "/c", ...KEYED },
    ],
  ],
  ["URL, unordered", UNORDERED, [{ path: "/b" }, { path: "/c" }]],
  ["URL, strict", STRICT, [{ path: "/b" }, { path: "/c" }]],
  ["cap", UNORDERED, [{ concurrency_cap: 4 }, { concurrency_cap: 1 }, { concurrency_cap: null }]],
  ["rate", UNORDERED, [{ rate_limit_per_second: 50 }, { rate_limit_per_second: 30 }, { rate_limit_per_second: null }]],
  ["the lane's object, strict", STRICT, [MOVE, MOVE]],
  ["the lane's object, keyed and capped", { ...KEYED, concurrency_cap: 3 }, [MOVE, MOVE]],
];

const EVENTS_BETWEEN = 50;

describe("a change under traffic loses, doubles and passes nothing, and holds from its answer on", () => {
  test.each(CASES)("%s", (_, { path = "/a", ...first }, changes) =>
    withReceiver(async (receiver) => {
      const tenant = await createTenant(relay.url);
      const endpoint = await createEndpoint(tenant, {
        url: receiver.url + path,
        retry_policy: { ...QUICK_RETRY, delays_seconds: [0.05] },
        ...first,
      });
      const { revision } = await expectStatus(200, tenant.admin.get(`/v1/endpoints/${endpoint.id}`));
      const eras: Era[] = [{ revision, settings: { path, ...first }, answeredAtMs: 0 }];
      // What limits a lane must have something to limit.
      const isLimiting = changes.some(
        (change) => change !== MOVE && ("concurrency_cap" in change || "rate_limit_per_second" in change),
      );
      const traffic = startTraffic(tenant, receiver, isLimiting ? 100 : 40);
      for (const change of changes) {
        await traffic.more(EVENTS_BETWEEN);
        const era = await makeChange(change, eras.at(-1)!);
        eras.push(era);
        // A rate shows in more requests than it allows in a second.
        const rate = era.settings["rate_limit_per_second"];
        if (typeof rate === "number") await traffic.moreUnder(era.revision, rate);
      }
      await traffic.more(EVENTS_BETWEEN);
      await traffic.stop();
      const { deliveries, attempts } = await settled(tenant);
      const { published, visits } = traffic;

      // Every acknowledged event has one delivery, which succeeded, and the receiver saw each attempt once.
      expect(deliveries.map(({ event_id }) => event_id).toSorted()).toEqual(
        published.map(({ eventId }) => eventId).toSorted(),
      );
      expect(deliveries.filter(({ status }) => status !== "succeeded")).toEqual([]);
      expect(visits.map(idOf).toSorted()).toEqual([...attempts.keys()].toSorted());
      expectSettingsKept(eras, visits, attempts);
      expectOrderKept(eras, visits, attempts, published);

      async function makeChange(change: Settings | typeof MOVE, last: Era): Promise<Era> {
        const { path: newPath, ...given } = change === MOVE ? {} : change;
        if (change === MOVE) await act(tenant, endpoint.id, "lane/move");
        else {
          const url = newPath === undefined ? {} : { url: receiver.url + newPath };
          await patchEndpoint(tenant, endpoint.id, { ...url, ...given });
        }
        const answeredAtMs = Date.now();
        const now = await expectStatus(200, tenant.admin.get(`/v1/endpoints/${endpoint.id}`));
        return { revision: now.revision, settings: { ...last.settings, ...(change !== MOVE && change) }, answeredAtMs };
      }
    }),
  );
});

const idOf = ({ deliveryId, attempt }: Visit) => `${deliveryId}:${attempt}`;

/** No attempt begins under old settings once the new ones were answered, and each keeps to those it has on record. */
function expectSettingsKept(eras: Era[], visits: Visit[], attempts: Attempts): void {
  for (const visit of visits) {
    const { requestedAtMs, revision } = attempts.get(idOf(visit))!;
    for (const era of eras) if (requestedAtMs > era.answeredAtMs) expect(revision).toBeGreaterThanOrEqual(era.revision);
    const era = eraOf(eras, revision);
    // Between the revisions of two eras a change is half made: the URL comes first.
    const isExact = revision === era.revision;
    if (!isExact) continue;
    expect(visit.path).toBe(era.settings.path);
    const cap = era.settings["concurrency_cap"];
    if (typeof cap === "number") expect(visit.inFlight).toBeLessThanOrEqual(cap);
  }
  const rates = new Set(eras.map(({ settings }) => settings["rate_limit_per_second"]));
  for (const rate of rates) {
    if (typeof rate !== "number") continue;
    const under = visits.filter(
      (visit) => eraOf(eras, attempts.get(idOf(visit))!.revision).settings["rate_limit_per_second"] === rate,
    );
    expect(under.length).toBeGreaterThan(rate);
    expect(
      shortestSpanMs(
        under.map(({ time }) => time),
        rate,
      ),
    ).toBeGreaterThanOrEqual(1_000);
  }
}

/** What was acknowledged before another was sent has succeeded before an attempt of the other begins, where that is promised. */
function expectOrderKept(eras: Era[], visits: Visit[], attempts: Attempts, published: Published[]): void {
  const succeededAt = new Map(
    visits.filter(({ succeeded }) => succeeded).map(({ eventId, answeredAt }) => [eventId, answeredAt]),
  );
  const byEvent = new Map(published.map((event) => [event.eventId, event]));
  let ordered = 0;
  for (const visit of visits) {
    const { revision } = attempts.get(idOf(visit))!;
    const { ordering_mode: mode } = eraOf(eras, revision).settings;
    if (mode === "unordered") continue;
    ordered++;
    const event = byEvent.get(visit.eventId)!;
    const before = published.filter(
      ({ acknowledgedAt, producer }) =>
        acknowledgedAt < event.sentAt && (mode === "strict" || producer === event.producer),
    );
    const passed = before.filter(({ eventId }) => succeededAt.get(eventId)! > visit.arrivedAt);
    expect({ visit, passed }).toEqual({ visit, passed: [] });
  }
  const isPromised = eras.some(({ settings }) => settings["ordering_mode"] !== "unordered");
  if (isPromised) expect(ordered).toBeGreaterThan(0);
}

const eraOf = (eras: Era[], revision: number) => eras.findLast((era) => era.revision <= revision)!;

describe.concurrent("once a pause has answered no attempt begins; what was published meanwhile follows the resume in order", () => {
  const MODES = { strict: STRICT, keyed: KEYED, capped: { concurrency_cap: 2 }, unordered: UNORDERED };
  test.each(Object.entries(MODES))("%s", (name, settings) =>
    withReceiver((receiver) =>
      withReceiver(async (other) => {
        receiver.handle(answeringAfter(30));
        const tenant = await createTenant(relay.url);
        const endpoint = await createEndpoint(tenant, { url: receiver.url, ...settings });
        await createEndpoint(tenant, { url: other.url });
        const keyOf = () => "key";
        const ids = await publishNumbered(tenant, 40, { keyOf });
        await receiver.waitFor(1);
        expect(await act(tenant, endpoint.id, "pause")).toMatchObject({
          state: "paused",
          paused_at: expect.any(String),
        });
        const pausedAtMs = Date.now();
        ids.push(...(await publishNumbered(tenant, 20, { from: 40, keyOf })));
        // Others go on, so there was time enough.
        await other.waitFor(60);
        const paused = await laneWhen(tenant, endpoint.id, "paused");
        const resumedAtMs = Date.now();
        expect(await act(tenant, endpoint.id, "resume")).toMatchObject({ state: "active", paused_at: null });
        await receiver.waitFor(60);
        const { deliveries } = await settled(tenant);
        const ours = deliveries.filter(({ endpoint_id }) => endpoint_id === endpoint.id);
        expect(ours).toHaveLength(60);
        const starts = ours.flatMap(({ attempts }) => attempts.map((a: any) => Date.parse(a.requested_at)));
        expect(starts).toHaveLength(60);
        expect(starts.filter((at) => at > pausedAtMs && at < resumedAtMs)).toEqual([]);
        expect(starts.filter((at) => at >= resumedAtMs).length).toBeGreaterThanOrEqual(20);
        if (name === "strict" || name === "keyed") {
          expect(receiver.received.map(numberOf)).toEqual(range(60));
          expect(paused.depth).toBeGreaterThanOrEqual(20);
        }
        expect(new Set(receiver.received.map(numberOf)).size).toBe(60);
      }),
    ),
  );
});

const TIMEOUT_MS = 30_000;

test("made strict, an endpoint goes on soon after what was under way has ended, without any more traffic", () =>
  withReceiver(async (receiver) => {
    const gate = holding();
    receiver.handle(gate.handler);
    const tenant = await createTenant(relay.url);
    const endpoint = await createEndpoint(tenant, { url: receiver.url, ...UNORDERED, timeout_ms: TIMEOUT_MS });
    const [former] = await publishNumbered(tenant, 1);
    await receiver.waitFor(1);
    await patchEndpoint(tenant, endpoint.id, STRICT);
    const [next] = await publishNumbered(tenant, 1, { from: 1 });
    await laneWhen(tenant, endpoint.id, "running");
    gate.letGo();
    const [before, after] = [await terminalDelivery(tenant, former!), await terminalDelivery(tenant, next!)];
    expect(after).toMatchObject({ status: "succeeded", attempt_count: 1 });
    const leaseEndsAt = Date.parse(before.attempts[0].requested_at) + TIMEOUT_MS + 30_000;
    expect(Date.parse(after.attempts[0].requested_at)).toBeLessThan(leaseEndsAt);
    expect(receiver.received.map(numberOf)).toEqual([0, 1]);
  }));

test("a disabled strict endpoint holds what is pending in its order; what is accepted meanwhile is born failed", () =>
  withReceiver(async (receiver) => {
    const gate = holding();
    receiver.handle(gate.handler);
    const tenant = await createTenant(relay.url);
    const endpoint = await createEndpoint(tenant, { url: receiver.url, ...STRICT, timeout_ms: TIMEOUT_MS });
    const ids = await publishNumbered(tenant, 10);
    await receiver.waitFor(1);
    expect(await act(tenant, endpoint.id, "disable")).toMatchObject({ state: "disabled" });
    const meanwhile = await publishNumbered(tenant, 5, { from: 10 });
    gate.letGo();
    // The one under way ends as it would have, and no other follows it.
    await deliveryWhen(tenant, ids[0]!, ({ status }) => status === "succeeded");
    await laneWhen(tenant, endpoint.id, "disabled");
    for (const id of ids.slice(1)) {
      expect(await readDelivery(tenant, id)).toMatchObject({ status: "pending", attempt_count: 0 });
    }
    await act(tenant, endpoint.id, "enable");
    await publishNumbered(tenant, 2, { from: 15 });
    await receiver.waitFor(12);
    for (const id of meanwhile) {
      expect(await terminalDelivery(tenant, id)).toMatchObject({
        status: "failed",
        final_outcome: "endpoint_disabled",
        attempt_count: 0,
      });
    }
    expect(receiver.received.map(numberOf)).toEqual([...range(10), 15, 16]);
  }));

test("what waits in a paused lane keeps the order of its acceptance through every mode", () =>
  withReceiver(async (receiver) => {
    const tenant = await createTenant(relay.url);
    const endpoint = await createEndpoint(tenant, { url: receiver.url, ...UNORDERED });
    await act(tenant, endpoint.id, "pause");
    const keyOf = (n: number) => `key-${n % 3}`;
    for (const [i, mode] of [UNORDERED, STRICT, KEYED, STRICT, UNORDERED, KEYED, STRICT].entries()) {
      await patchEndpoint(tenant, endpoint.id, mode);
      await publishNumbered(tenant, 10, { from: i * 10, keyOf });
    }
    await act(tenant, endpoint.id, "resume");
    await receiver.waitFor(70);
    expect(receiver.received.map(numberOf)).toEqual(range(70));
  }));
