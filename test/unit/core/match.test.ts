import fc from "fast-check";
import { expect, test } from "vitest";
import { compilePattern } from "../../../src/core/event-type.ts";
import { createFilterCache } from "../../../src/core/filter/filter-cache.ts";
import { collectTypes, type RegisteredTypes } from "../../../src/core/registered-types.ts";
import { createMatcher, type MatchableSubscription } from "../../../src/core/match.ts";

const SEED = { seed: 20_271, numRuns: 300 };

const patterns = fc.constantFrom("*", "order.*", "order.paid", "*.paid", "order.*.eu", "user.made");
const types = fc.constantFrom("order.paid", "order.paid.eu", "user.made", "user", "order");

/** Oldest first, as the ledger gives them; the ids say the age. */
const subscriptionLists = fc
  .array(
    fc.record({
      endpointId: fc.constantFrom("ep_a", "ep_b", "ep_c", "ep_d"),
      eventTypePattern: patterns,
      entitlementScope: fc.constantFrom<string[]>([], ["orders"], ["users", "orders"], ["orders.all"]),
      schemaVersion: fc.constant(null),
      maxAgeSeconds: fc.integer({ min: 1, max: 9 }),
      endpointDisabled: fc.boolean(),
      lane: fc.constantFrom(null, { generation: 1 }),
    }),
    { maxLength: 12 },
  )
  .map((list): MatchableSubscription[] => list.map((fields, n) => ({ id: `sub_${n}`, filter: null, ...fields })));

/** What an event carries that says nothing of versions. */
const ONE = [1];
const NO_TYPES: RegisteredTypes = new Map();

/** Types whose one version is live, with what they require. */
const requiring = (scopes: Record<string, string | null>): RegisteredTypes =>
  collectTypes(
    Object.entries(scopes).map(([name, requiredScope]) => ({
      name,
      requiredScope,
      schemaVersion: 1,
      jsonSchema: null,
      isRetired: false,
    })),
  );

function subscription(over: Partial<MatchableSubscription>): MatchableSubscription {
  return {
    id: "sub_1",
    endpointId: "ep_a",
    eventTypePattern: "*",
    entitlementScope: [],
    schemaVersion: null,
    maxAgeSeconds: 60,
    endpointDisabled: false,
    filter: null,
    lane: null,
    ...over,
  };
}

/** Nobody filters here, so nothing is needed to match. */
function matcher(subscriptions: MatchableSubscription[], registered = NO_TYPES) {
  const match = createMatcher(subscriptions, registered, createFilterCache());
  return (eventType: string) => match(eventType, ONE, null)!.deliveries;
}

test("an endpoint gets one delivery if any of its subscriptions match, and none otherwise", () => {
  fc.assert(
    fc.property(subscriptionLists, types, (subscriptions, type) => {
      const owed = matcher(subscriptions)(type).map(({ endpointId }) => endpointId);
      const matching = subscriptions.filter(({ eventTypePattern }) => compilePattern(eventTypePattern)(type));
      expect(owed).toEqual([...new Set(matching.map(({ endpointId }) => endpointId))].toSorted());
    }),
    SEED,
  );
});

test("a delivery carries the oldest subscription that matches, with that one's window and its endpoint's state", () => {
  fc.assert(
    fc.property(subscriptionLists, types, (subscriptions, type) => {
      for (const delivery of matcher(subscriptions)(type)) {
        const oldest = subscriptions.find(
          ({ endpointId, eventTypePattern }) =>
            endpointId === delivery.endpointId && compilePattern(eventTypePattern)(type),
        )!;
        const { id, endpointId, maxAgeSeconds, endpointDisabled, lane } = oldest;
        const carried = { schemaVersion: 1, versionFault: null };
        expect(delivery).toEqual({ subscriptionId: id, endpointId, maxAgeSeconds, endpointDisabled, lane, ...carried });
      }
    }),
    SEED,
  );
});

test("an older subscription that does not match leaves the place to a younger one that does", () => {
  const match = matcher([
    subscription({ id: "sub_1", eventTypePattern: "user.*" }),
    subscription({ id: "sub_2", eventTypePattern: "order.*", maxAgeSeconds: 7 }),
  ]);
  expect(match("order.paid")).toMatchObject([{ subscriptionId: "sub_2", maxAgeSeconds: 7 }]);
});

test("asking again gives the same deliveries, whichever types were asked for between", () => {
  fc.assert(
    fc.property(subscriptionLists, fc.array(types, { minLength: 2, maxLength: 10 }), (subscriptions, asked) => {
      const match = matcher(subscriptions);
      for (const type of asked) expect(match(type)).toEqual(matcher(subscriptions)(type));
    }),
    SEED,
  );
});

test("answers are kept by type, and a producer that invents types does not make them grow past ten thousand entries", () => {
  const endpoints = Array.from({ length: 99 }, (_, n) => subscription({ id: `sub_${n}`, endpointId: `ep_${n}` }));
  const match = matcher(endpoints);
  const first = match("kept.type");
  // A type and its 99 deliveries are a hundred entries.
  for (let n = 0; n < 99; n++) match(`invented.type_${n}`);
  expect(match("kept.type")).toBe(first);
  match("invented.one_more");
  expect(match("kept.type")).not.toBe(first);
  expect(match("kept.type")).toEqual(first);
});

test("a type that requires a scope goes to subscriptions that have it as a word, and to nobody else", () => {
  fc.assert(
    fc.property(
      subscriptionLists,
      types,
      fc.constantFrom("orders", "users", "order", null),
      (subscriptions, type, scope) => {
        const entitled = subscriptions.filter(
          ({ entitlementScope }) => scope === null || entitlementScope.includes(scope),
        );
        const registered = requiring({ [type]: scope, "other.type": "nobody" });
        expect(matcher(subscriptions, registered)(type)).toEqual(matcher(entitled)(type));
      },
    ),
    SEED,
  );
});
