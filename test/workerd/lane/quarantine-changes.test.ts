import { expect, test } from "vitest";
import { deleteEndpoint } from "../../../src/app/endpoint/delete-endpoint.ts";
import { MAX_MOVED } from "../../../src/app/endpoint/change-routing.ts";
import { enterQuarantine, leaveQuarantine } from "../../../src/app/endpoint/quarantine.ts";
import {
  disableEndpoint,
  enableEndpoint,
  pauseEndpoint,
  resumeEndpoint,
} from "../../../src/app/endpoint/switch-endpoint.ts";
import { updateEndpoint } from "../../../src/app/endpoint/update-endpoint.ts";
import { createActLedger } from "../../../src/storage/ledger/act.ts";
import { createRerouteLedger } from "../../../src/storage/ledger/reroute.ts";
import {
  acting,
  createHung,
  endpointOf,
  enter,
  names,
  placeOf,
  POLICY,
  quarantineDeps,
  routeOf,
  SEEN,
} from "./hung.ts";
import { cancelAll } from "./support.ts";

test("an answer of the ledger that is lost changes nothing: what was done is found done", async () => {
  const fixture = await createHung();
  await fixture.publishAll(names(2));
  const ledger = createRerouteLedger(fixture.db);
  const { deps, lines } = quarantineDeps(fixture, {
    async changeRouting(...args) {
      await ledger.changeRouting(...args);
      throw new Error("the answer was lost");
    },
  });
  await enterQuarantine(deps, placeOf(fixture), SEEN);
  await enterQuarantine(deps, placeOf(fixture), SEEN);
  const { quarantined_at, revision } = await endpointOf(fixture);
  expect(revision).toBe(2);
  expect(await routeOf(fixture)).toBe("lane");
  const at = Date.parse(quarantined_at);
  // That of another time is not this one.
  await leaveQuarantine(deps, placeOf(fixture), at - 1);
  expect(await routeOf(fixture)).toBe("lane");
  await leaveQuarantine(deps, placeOf(fixture), at);
  await leaveQuarantine(deps, placeOf(fixture), at);
  expect(await endpointOf(fixture)).toMatchObject({ quarantined_at: null, revision: 3 });
  expect((await fixture.rows()).every(({ lane_key }) => lane_key === null)).toBe(true);
  expect(lines).toEqual(["quarantine", "leave quarantine"]);
  await cancelAll(fixture);
});

test("only an endpoint that queues serve and nothing holds is quarantined", async () => {
  const lines: unknown[] = [];
  for (const endpoint of [{ ordering_mode: "strict" }, { concurrency_cap: 2 }, { timeout_ms: 25_000 }]) {
    const fixture = await createHung(endpoint);
    const scene = quarantineDeps(fixture);
    await enterQuarantine(scene.deps, placeOf(fixture), SEEN);
    expect(await endpointOf(fixture)).toMatchObject({ quarantined_at: null, revision: 1 });
    lines.push(...scene.lines);
  }
  for (const action of ["pause", "disable"]) {
    const fixture = await createHung();
    await fixture.tenant.api.post(`/v1/endpoints/${fixture.endpointId}/${action}`, {});
    const scene = quarantineDeps(fixture);
    await enterQuarantine(scene.deps, placeOf(fixture), SEEN);
    expect((await endpointOf(fixture)).quarantined_at).toBeNull();
    lines.push(...scene.lines);
  }
  expect(lines).toEqual([]);
});

test.each<[string, object, boolean, string]>([
  ["an order", { ordering_mode: "strict" }, false, "lane"],
  ["a cap", { concurrency_cap: 3 }, false, "lane"],
  ["a longer timeout", { timeout_ms: 30_000 }, false, "lane"],
  ["another URL", { url: "https://other.example/hook" }, false, "queue"],
  ["the same URL", { url: "https://consumer.example/hook" }, false, "queue"],
  ["a URL and a policy", { url: "https://other.example/hook", retry_policy: POLICY }, false, "queue"],
  ["a policy", { retry_policy: POLICY }, true, "lane"],
  ["headers", { headers: { "X-One": "1" } }, true, "lane"],
  ["a shorter timeout", { timeout_ms: 5_000 }, true, "lane"],
  ["a name", { name: "one" }, true, "lane"],
])("a change of an endpoint in quarantine: %s", async (_what, change, stays, route) => {
  const fixture = await createHung();
  await fixture.publishAll(names(3));
  await enter(fixture);
  const { deps, principal } = acting(fixture);
  await updateEndpoint(deps, principal, fixture.endpointId, change);
  expect((await endpointOf(fixture)).quarantined_at !== null).toBe(stays);
  expect(await routeOf(fixture)).toBe(route);
  expect((await fixture.rows()).every(({ lane_key }) => (lane_key !== null) === (route === "lane"))).toBe(true);
  await cancelAll(fixture);
});

test("one with more waiting than a move should write stays with the queues, and is counted again after half a minute", async () => {
  const fixture = await createHung();
  let queued = MAX_MOVED + 1;
  let counts = 0;
  const { deps, lines } = quarantineDeps(fixture, {
    async countToMove(_tenantId, _endpointId, _from, limit) {
      counts++;
      return Math.min(queued, limit);
    },
  });
  await enterQuarantine(deps, placeOf(fixture), SEEN);
  queued = MAX_MOVED;
  await enterQuarantine(deps, placeOf(fixture), SEEN);
  expect([counts, lines, await routeOf(fixture)]).toEqual([1, ["quarantine_refused"], "queue"]);
  fixture.forward(30_000);
  await enterQuarantine(deps, placeOf(fixture), SEEN);
  expect([counts, await routeOf(fixture)]).toEqual([2, "lane"]);
});

test("with as much in its lane a URL begins its quarantine anew, and moves nothing", async () => {
  const fixture = await createHung();
  await fixture.publishAll(names(2));
  fixture.forward(-60_000);
  await enter(fixture);
  const before = await endpointOf(fixture);
  const { deps, principal } = acting(fixture);
  const url = "https://other.example/hook";
  for (const change of [{ url }, { url, timeout_ms: 5_000 }])
    await updateEndpoint({ ...deps, countToMove: async () => MAX_MOVED + 1 }, principal, fixture.endpointId, change);
  const after = await endpointOf(fixture);
  expect(after).toMatchObject({ url, timeout_ms: 5_000 });
  expect(Date.parse(after.quarantined_at)).toBeGreaterThanOrEqual(Date.parse(before.quarantined_at) + 60_000);
  expect((await fixture.rows()).every(({ lane_key }) => lane_key !== null)).toBe(true);
  await cancelAll(fixture);
});

test("what is counted of an endpoint before it is moved is what queues have of it, or its lane, up to a limit", async () => {
  const fixture = await createHung();
  await fixture.publishAll(names(3));
  const { countToMove } = createRerouteLedger(fixture.db);
  const { tenant, endpointId } = fixture;
  const counts = async (tenantId = tenant.id, limit = 5) =>
    Promise.all((["queue", "lane"] as const).map((from) => countToMove(tenantId, endpointId, from, limit)));
  expect([await counts(), await counts(tenant.id, 2), await counts("ten_other")]).toEqual([
    [3, 0],
    [2, 0],
    [0, 0],
  ]);
  await enter(fixture);
  expect([await counts(), await counts(tenant.id, 2), await counts("ten_other")]).toEqual([
    [0, 3],
    [0, 2],
    [0, 0],
  ]);
  await cancelAll(fixture);
});

test("a URL that was given meanwhile is not quarantined for what the one before it did", async () => {
  const fixture = await createHung();
  const { deps, principal } = acting(fixture);
  await updateEndpoint(deps, principal, fixture.endpointId, { url: "https://other.example/hook" });
  await enterQuarantine(quarantineDeps(fixture).deps, placeOf(fixture), SEEN);
  expect((await endpointOf(fixture)).quarantined_at).toBeNull();
});

test("it is held by pause and disable like any other, and a deleted one ends what it is owed", async () => {
  const fixture = await createHung();
  await fixture.publishAll(names(3));
  await enter(fixture);
  const { deps, principal } = acting(fixture);
  const own = fixture.createLane();
  for (const [stop, go] of [
    [pauseEndpoint, resumeEndpoint],
    [disableEndpoint, enableEndpoint],
  ] as const) {
    await stop(deps, principal, fixture.endpointId);
    await own.run();
    expect(fixture.sent).toEqual([]);
    expect((await go(deps, principal, fixture.endpointId)).quarantinedAt).not.toBeNull();
  }
  await deleteEndpoint(deps, principal, fixture.endpointId);
  expect((await fixture.rows()).map(({ final_outcome }) => final_outcome)).toEqual(
    names(3).map(() => "endpoint_deleted"),
  );
  await own.run();
  expect(fixture.sent).toEqual([]);
});

test("a lane that is moved to a new object goes on at one, and the old one is given nothing", async () => {
  const fixture = await createHung();
  await fixture.publishAll(names(8));
  await enter(fixture);
  const former = fixture.createLane("former");
  former.state.drain = {
    quarantinedAt: Date.parse((await endpointOf(fixture)).quarantined_at),
    size: 16,
    answered: 0,
    misses: 0,
    since: 0,
    notBefore: 0,
  };
  await createActLedger(fixture.db).moveLane(fixture.tenant.id, fixture.endpointId);
  await former.run();
  expect(fixture.sent).toEqual([]);
  fixture.answer = () => null;
  await fixture.createLane("next", 1).run();
  expect(fixture.sent.map(({ by }) => by)).toEqual(["next"]);
  await cancelAll(fixture);
});
