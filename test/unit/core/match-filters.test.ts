import fc from "fast-check";
import { expect, test } from "vitest";
import { compilePattern } from "../../../src/core/event-type.ts";
import { createFilterCache } from "../../../src/core/filter/filter-cache.ts";
import { createFilterInput } from "../../../src/core/filter/filter-input.ts";
import { MAX_EVENT_STEPS, MAX_FILTER_STEPS } from "../../../src/core/filter/language.ts";
import { createMatcher, type MatchableSubscription } from "../../../src/core/match.ts";
import type { RegisteredTypes } from "../../../src/core/registered-types.ts";
import { EVENT } from "./filter/support.ts";

const SEED = { seed: 20_307, numRuns: 300 };
const STILL = () => 0;
const ONE = [1];
const NO_TYPES: RegisteredTypes = new Map();

function subscription(over: Partial<MatchableSubscription>): MatchableSubscription {
  const plain = { eventTypePattern: "*", filter: null, maxAgeSeconds: 60, endpointDisabled: false, lane: null };
  const any = { entitlementScope: [], schemaVersion: null };
  return { id: "sub_1", endpointId: "ep_a", ...plain, ...any, ...over };
}

const filtering = (payload: unknown, clock: () => number = STILL) => ({
  inputOf: () => createFilterInput(EVENT, new TextEncoder().encode(JSON.stringify(payload))),
  clock,
});

const match = (subscriptions: MatchableSubscription[], type: string, payload: unknown) =>
  createMatcher(subscriptions, NO_TYPES, createFilterCache())(type, ONE, filtering(payload))!;

/** What each says of `{ n }`: by number it matches, does not, or fails. */
const filters = fc.constantFrom(null, "payload.n == 1", "payload.n != 1", "payload.x == 1", 'payload.n > "a"');
const passes = (filter: string | null, n: number) =>
  filter === null || (filter.includes("n == 1") ? n === 1 : filter.includes("n != 1") ? n !== 1 : false);
const subscriptionLists = fc
  .array(
    fc.record({
      endpointId: fc.constantFrom("ep_a", "ep_b", "ep_c"),
      eventTypePattern: fc.constantFrom("*", "order.*", "user.made"),
      filter: filters,
    }),
    { maxLength: 10 },
  )
  .map((list) => list.map((fields, n) => subscription({ id: `sub_${n}`, ...fields })));

test("an endpoint gets the oldest of its subscriptions whose pattern and filter the event passes; who fails is skipped, in order", () => {
  fc.assert(
    fc.property(
      subscriptionLists,
      fc.constantFrom("order.paid", "user.made"),
      fc.integer({ min: 0, max: 2 }),
      (list, type, n) => {
        const candidates = list.filter(({ eventTypePattern }) => compilePattern(eventTypePattern)(type));
        const matching = candidates.filter(({ filter }) => passes(filter, n));
        const { deliveries, skipped } = match(list, type, { n });
        const endpoints = [...new Set(matching.map(({ endpointId }) => endpointId))].toSorted();
        expect(deliveries.map(({ endpointId, subscriptionId }) => [endpointId, subscriptionId])).toEqual(
          endpoints.map((id) => [id, matching.find(({ endpointId }) => endpointId === id)!.id]),
        );
        expect(skipped).toEqual(
          candidates
            .filter(({ filter }) => filter === 'payload.n > "a"')
            .map(({ id }) => ({ subscriptionId: id, reason: "type_mismatch" })),
        );
      },
    ),
    SEED,
  );
});

test("a type that nobody filters is answered without an event, and one that somebody does is not", () => {
  const matcher = createMatcher(
    [
      subscription({ eventTypePattern: "user.*" }),
      subscription({ id: "sub_2", eventTypePattern: "order.*", filter: "true" }),
    ],
    NO_TYPES,
    createFilterCache(),
  );
  expect(matcher("user.made", ONE, null)?.deliveries).toHaveLength(1);
  expect(matcher("user.made", ONE, null)).toBe(matcher("user.made", ONE, filtering({})));
  expect(matcher("order.paid", ONE, null)).toBeNull();
  expect(matcher("order.paid", ONE, filtering({}))?.deliveries).toHaveLength(1);
});

test("a payload is parsed when a filter asks for it, and once for all of them", () => {
  let parsed = 0;
  const bytes = new TextEncoder().encode('{"n":1}');
  const counting = () => {
    const input = createFilterInput(EVENT, bytes);
    return { inputOf: () => ({ ...input, payload: () => (parsed++, input.payload()) }), clock: STILL };
  };
  const asked = (list: MatchableSubscription[], type = "order.paid") => {
    parsed = 0;
    createMatcher(list, NO_TYPES, createFilterCache())(type, ONE, counting());
    return parsed;
  };
  expect(asked([subscription({})])).toBe(0);
  expect(asked([subscription({ filter: 'event.type == "x"' })])).toBe(0);
  expect(asked([subscription({ filter: "payload.n == 1", eventTypePattern: "user.*" })])).toBe(0);
  expect(asked([subscription({ filter: "payload.n == 1" })])).toBe(1);

  const input = createFilterInput(EVENT, bytes);
  expect(input.payload()).toBe(input.payload());
  expect(input.event()).toBe(input.event());
});

test("a delivery has the steps and the milliseconds of the filter of its own subscription", () => {
  let now = 0;
  const list = [
    subscription({ filter: "payload.n == 2 || payload.n == 3" }),
    subscription({ id: "sub_2", filter: "payload.n == 1" }),
    subscription({ id: "sub_3", endpointId: "ep_b", filter: "true" }),
    subscription({ id: "sub_4", endpointId: "ep_c" }),
  ];
  const matcher = createMatcher(list, NO_TYPES, createFilterCache());
  const { deliveries, steps } = matcher(
    "order.paid",
    ONE,
    filtering({ n: 1 }, () => (now += 0.5)),
  )!;
  expect(deliveries.map(({ subscriptionId, filterMatch }) => [subscriptionId, filterMatch])).toEqual([
    ["sub_2", { steps: 4, ms: 0.5 }],
    ["sub_3", { steps: 1, ms: 0.5 }],
    ["sub_4", undefined],
  ]);
  expect(steps).toBe(9 + 4 + 1);
  const still = matcher("order.paid", ONE, filtering({ n: 1 }))!;
  expect(still.deliveries[0]!.filterMatch).toEqual({ steps: 4, ms: null });
});

test("all filters of an event together end at its bound: who came too late is told apart from who took too much", () => {
  const count = MAX_EVENT_STEPS / MAX_FILTER_STEPS + 5;
  const list = Array.from({ length: count }, (_, n) =>
    subscription({
      id: `sub_${n}`,
      endpointId: `ep_${n}`,
      filter: `payload.all(x, payload.all(y, x + y < ${1_000 + n}))`,
    }),
  );
  list.push(subscription({ id: "sub_last", endpointId: "ep_last" }));
  const payload = Array.from({ length: 300 }, (_, n) => n);
  const { deliveries, skipped, steps } = match(list, "order.paid", payload);
  expect(steps).toBe(MAX_EVENT_STEPS);
  expect(skipped.map(({ reason }) => reason)).toEqual([
    ...Array(count - 5).fill("filter_work_exceeded"),
    ...Array(5).fill("event_work_exceeded"),
  ]);
  // Whoever has no filter has nothing to pay.
  expect(deliveries.map(({ endpointId }) => endpointId)).toEqual(["ep_last"]);
});

test("a filter that does not compile skips its subscription alone", () => {
  const list = [
    subscription({ filter: "payload.(" }),
    subscription({ id: "sub_2", endpointId: "ep_b", filter: "true" }),
  ];
  const { deliveries, skipped } = match(list, "order.paid", {});
  expect(deliveries).toMatchObject([{ subscriptionId: "sub_2" }]);
  expect(skipped).toEqual([{ subscriptionId: "sub_1", reason: "invalid_filter" }]);
});

test("types that are invented do not grow what is remembered where somebody filters, either", () => {
  const list = Array.from({ length: 99 }, (_, n) =>
    subscription({ id: `sub_${n}`, endpointId: `ep_${n}`, filter: "payload.n == 1" }),
  );
  const matcher = createMatcher(list, NO_TYPES, createFilterCache());
  for (let n = 0; n < 300; n++)
    expect(matcher(`invented.type_${n}`, ONE, filtering({ n: 1 }))!.deliveries).toHaveLength(99);
});

/** An event that carries these payloads, by version. */
const carrying = (payloads: Record<number, unknown>) => {
  const inputs = Object.entries(payloads).map(([version, payload]) => {
    const bytes = new TextEncoder().encode(JSON.stringify(payload));
    return [Number(version), createFilterInput({ ...EVENT, schemaVersion: Number(version) }, bytes)] as const;
  });
  const byVersion = new Map(inputs);
  return { inputOf: (version: number) => byVersion.get(version)!, clock: STILL };
};

test("a filter is asked of the version that its subscription would be sent, whichever the event's own is", () => {
  const list = [
    subscription({ id: "sub_3", endpointId: "ep_3", schemaVersion: 3, filter: "payload.total > 10" }),
    subscription({ id: "sub_4", endpointId: "ep_4", schemaVersion: 4, filter: "payload.amount.value > 10" }),
    subscription({ id: "sub_any", endpointId: "ep_any", filter: "event.schema_version == 4 && !has(payload.total)" }),
  ];
  const matcher = createMatcher(list, NO_TYPES, createFilterCache());
  const owed = (versions: number[], total: number) =>
    matcher("invoice.paid", versions, carrying({ 3: { total }, 4: { amount: { value: total } } }))!.deliveries.map(
      ({ subscriptionId, schemaVersion, versionFault }) => [subscriptionId, schemaVersion, versionFault],
    );
  for (const versions of [
    [3, 4],
    [4, 3],
  ]) {
    expect(owed(versions, 11)).toEqual([
      ["sub_3", 3, null],
      ["sub_4", 4, null],
      ["sub_any", 4, null],
    ]);
    expect(owed(versions, 1)).toEqual([["sub_any", 4, null]]);
  }
});

test("of one endpoint's subscriptions the highest version is chosen among those whose filter took theirs", () => {
  const list = [
    subscription({ id: "sub_3", schemaVersion: 3, filter: "payload.total > 10" }),
    subscription({ id: "sub_4", schemaVersion: 4, filter: "payload.amount > 100" }),
  ];
  const matcher = createMatcher(list, NO_TYPES, createFilterCache());
  const owed = (three: unknown, four: unknown) =>
    matcher("invoice.paid", [3, 4], carrying({ 3: three, 4: four }))!.deliveries.map(
      ({ schemaVersion }) => schemaVersion,
    );
  expect(owed({ total: 101 }, { amount: 101 })).toEqual([4]);
  expect(owed({ total: 11 }, { amount: 11 })).toEqual([3]);
  expect(owed({ total: 1 }, { amount: 101 })).toEqual([4]);
  expect(owed({ total: 1 }, { amount: 1 })).toEqual([]);
});

test("where nobody gets the version asked for, only a plain no of the event's own payload keeps that off the record", () => {
  const pinned = (filter: string) => subscription({ schemaVersion: 3, filter });
  const outcome = (filter: string) => {
    const matcher = createMatcher([pinned(filter)], NO_TYPES, createFilterCache());
    const { deliveries, skipped } = matcher("invoice.paid", [4], carrying({ 4: { amount: 5 } }))!;
    expect(skipped).toEqual([]);
    return deliveries.map(({ schemaVersion, versionFault }) => [schemaVersion, versionFault]);
  };
  const onRecord = [[3, "version_not_published"]];
  expect(outcome("payload.amount > 1")).toEqual(onRecord);
  expect(outcome("payload.total > 1")).toEqual(onRecord);
  expect(outcome('payload.amount > "a"')).toEqual(onRecord);
  expect(outcome("payload.amount > 10")).toEqual([]);
  expect(outcome('event.type == "nothing"')).toEqual([]);
});
