import fc from "fast-check";
import { expect, test } from "vitest";
import { createFilterCache } from "../../../src/core/filter/filter-cache.ts";
import { createMatcher } from "../../../src/core/match.ts";
import { collectTypes } from "../../../src/core/registered-types.ts";
import { MAX_REPORTED_PAIRS, MAX_REPORTED_TYPES, reportVersions } from "../../../src/core/version-report.ts";
import type { AskingSubscription, KnownVersion, RecentEvents } from "../../../src/core/version-rows.ts";

const ALL = { eventType: null, schemaVersion: null };

let made = 0;
const asking = (eventTypePattern: string, fields: Partial<AskingSubscription> = {}): AskingSubscription => ({
  id: `sub_${made++}`,
  endpointId: `ep_${made}`,
  endpointDisabledAt: null,
  eventTypePattern,
  isFiltered: false,
  entitlementScope: [],
  schemaVersion: null,
  ...fields,
});
const version = (name: string, schemaVersion: number, fields: Partial<KnownVersion> = {}): KnownVersion => ({
  name,
  schemaVersion,
  requiredScope: null,
  retiredAt: null,
  ...fields,
});
const events = (type: string, versions: number[], fields: Partial<RecentEvents> = {}): RecentEvents => ({
  type,
  versions,
  count: 1,
  lastAt: 5,
  lastId: "evt_5",
  ...fields,
});
/** Row by row who stands in it: `type version: subscription(decided by, withheld)`. */
const shown = ({ rows }: ReturnType<typeof reportVersions>) =>
  rows.map(
    ({ eventType, schemaVersion, subscriptions }) =>
      `${eventType} ${schemaVersion}: ${subscriptions
        .map(({ subscription, decidedBy, withheld }) => `${subscription.id} ${decidedBy} ${withheld}`)
        .join(", ")}`,
  );

test("a pin is what it says; without one the newest recent event decides, then what is registered, then nothing", () => {
  const pinned = asking("a.b", { id: "pinned", schemaVersion: 3 });
  const open = asking("a.b", { id: "open" });
  const both = [pinned, open];
  expect(shown(reportVersions([], [], both, ALL))).toEqual(["a.b 3: pinned pin null", "a.b null: open null null"]);
  const known = [version("a.b", 2), version("a.b", 4), version("a.b", 5, { retiredAt: 7 })];
  expect(shown(reportVersions(known, [], both, ALL))).toEqual([
    "a.b 2: ",
    "a.b 3: pinned pin null",
    "a.b 4: open registered null",
    "a.b 5: ",
  ]);
  const recent = [events("a.b", [1, 3], { lastId: "evt_9" }), events("a.b", [4], { lastId: "evt_8" })];
  expect(shown(reportVersions(known, recent, both, ALL))).toEqual([
    "a.b 1: ",
    "a.b 2: ",
    "a.b 3: pinned pin null, open recent_event null",
    "a.b 4: ",
    "a.b 5: ",
  ]);
});

test("what is not to be had is said where it was asked for", () => {
  const two = asking("*", { id: "two", schemaVersion: 2 });
  const three = asking("*", { id: "three", schemaVersion: 3 });
  const open = asking("*", { id: "open" });
  const known = [version("a.b", 2, { retiredAt: 7 })];
  expect(shown(reportVersions(known, [events("a.b", [2])], [two, three, open], ALL))).toEqual([
    "a.b 2: two pin version_retired, open recent_event version_retired",
    "a.b 3: three pin version_not_published",
  ]);
});

test("another subscription of the endpoint that always wins is named as the reason, a filtered one is not", () => {
  const endpointId = "ep_one";
  const older = asking("a.b", { id: "older", endpointId, schemaVersion: 1 });
  const younger = asking("a.*", { id: "younger", endpointId, schemaVersion: 2 });
  const twin = asking("a.b", { id: "twin", endpointId, schemaVersion: 2 });
  const recent = [events("a.b", [1, 2])];
  expect(shown(reportVersions([], recent, [older, younger, twin], ALL))).toEqual([
    "a.b 1: older pin other_subscription",
    "a.b 2: younger pin null, twin pin other_subscription",
  ]);
  const some = { ...younger, isFiltered: true };
  expect(shown(reportVersions([], recent, [older, some], ALL))).toEqual([
    "a.b 1: older pin null",
    "a.b 2: younger pin null",
  ]);
  const less = { ...older, isFiltered: true };
  expect(shown(reportVersions([], recent, [less, younger], ALL))).toEqual([
    "a.b 1: older pin other_subscription",
    "a.b 2: younger pin null",
  ]);
});

test("who lacks the scope that a type requires gets nothing of it", () => {
  const known = [version("a.b", 1, { requiredScope: "pii" })];
  const has = asking("a.b", { id: "has", entitlementScope: ["orders", "pii"] });
  expect(shown(reportVersions(known, [], [asking("a.b"), has], ALL))).toEqual(["a.b 1: has registered null"]);
});

test("a wildcard that matches nothing known still asks for its version", () => {
  const pinned = asking("x.*", { id: "pinned", schemaVersion: 3 });
  const open = asking("y.*", { id: "open" });
  const known = [version("a.b", 3)];
  expect(shown(reportVersions(known, [], [pinned, open], ALL))).toEqual([
    "a.b 3: ",
    "null 3: pinned pin null",
    "null null: open null null",
  ]);
  expect(shown(reportVersions(known, [], [pinned, open], { eventType: null, schemaVersion: 3 }))).toEqual([
    "a.b 3: ",
    "null 3: pinned pin null",
  ]);
  expect(shown(reportVersions(known, [], [pinned, open], { eventType: "x.new", schemaVersion: null }))).toEqual([
    "x.new 3: pinned pin null",
  ]);
});

test("versions say when they were retired, how many recent events carry them, and when the last did", () => {
  const known = [version("a.b", 1, { retiredAt: 7 })];
  const recent = [events("a.b", [1], { count: 4 }), events("a.b", [1, 2], { count: 2, lastAt: 9, lastId: "evt_9" })];
  expect(reportVersions(known, recent, [], ALL)).toEqual({
    types: 1,
    typesLookedAt: 1,
    rows: [
      {
        eventType: "a.b",
        schemaVersion: 1,
        isRegistered: true,
        retiredAt: 7,
        events: 6,
        lastEventAt: 9,
        subscriptions: [],
      },
      {
        eventType: "a.b",
        schemaVersion: 2,
        isRegistered: false,
        retiredAt: null,
        events: 2,
        lastEventAt: 9,
        subscriptions: [],
      },
    ],
  });
});

test("of more types than are looked at those with most events are, how many is said, and nothing of who matches none", () => {
  const many = Array.from({ length: MAX_REPORTED_TYPES + 20 }, (_, i) => events(`t.${i}`, [1], { count: i + 1 }));
  // It matches a type that is not looked at.
  const { rows, types, typesLookedAt } = reportVersions([], many, [asking("*.3", { schemaVersion: 9 })], ALL);
  expect([rows.length, types, typesLookedAt]).toEqual([
    MAX_REPORTED_TYPES,
    MAX_REPORTED_TYPES + 20,
    MAX_REPORTED_TYPES,
  ]);
  expect(rows.some(({ eventType }) => eventType === null || eventType === "t.19")).toBe(false);
});

test("very many subscriptions to everything leave room for fewer types", () => {
  const subscriptions = Array.from({ length: 1_000 }, () => asking("*"));
  const many = Array.from({ length: 300 }, (_, i) => events(`t.${i}`, [1], { count: i + 1 }));
  const { rows, types, typesLookedAt } = reportVersions([], many, subscriptions, ALL);
  expect([types, typesLookedAt]).toEqual([300, MAX_REPORTED_PAIRS / 1_000 + 1]);
  expect(new Set(rows.map(({ eventType }) => eventType)).size).toBe(typesLookedAt);
  expect(rows.some(({ eventType }) => eventType === "t.299")).toBe(true);
});

test("it says of the newest event exactly what a publish made of it", () => {
  const pins = fc.constantFrom(null, 1, 2, 3);
  const list = fc.array(
    fc.record({
      endpointId: fc.constantFrom("ep_a", "ep_b", "ep_c"),
      eventTypePattern: fc.constantFrom("*", "a.*", "a.b", "*.b", "a.*.c"),
      entitlementScope: fc.constantFrom<string[]>([], ["pii"]),
      schemaVersion: pins,
    }),
    { maxLength: 10 },
  );
  const registered = fc.uniqueArray(
    fc.record({ schemaVersion: fc.constantFrom(1, 2, 3), retiredAt: fc.constantFrom(null, 7) }),
    { selector: ({ schemaVersion }) => schemaVersion },
  );
  const carried = fc.uniqueArray(fc.constantFrom(1, 2, 3), { minLength: 1 });
  fc.assert(
    fc.property(list, registered, carried, fc.constantFrom(null, "pii"), (given, versions, carries, requiredScope) => {
      const subscriptions = given.map((fields, n) => asking(fields.eventTypePattern, { ...fields, id: `sub_${n}` }));
      const known = versions.map((fields) => version("a.b", fields.schemaVersion, { ...fields, requiredScope }));
      const { rows } = reportVersions(known, [events("a.b", carries)], subscriptions, { ...ALL, eventType: "a.b" });
      const told = rows.flatMap(({ schemaVersion, subscriptions: of }) =>
        of.flatMap(({ subscription, withheld }) => (withheld === null ? [`${subscription.id} ${schemaVersion}`] : [])),
      );
      const match = createMatcher(
        subscriptions.map((subscription) => ({
          ...subscription,
          filter: null,
          maxAgeSeconds: 1,
          endpointDisabled: false,
          lane: null,
        })),
        collectTypes(known.map((of) => ({ ...of, jsonSchema: null, isRetired: of.retiredAt !== null }))),
        createFilterCache(),
      );
      const got = match("a.b", carries, null)!.deliveries.filter(({ versionFault }) => versionFault === null);
      expect(told.toSorted()).toEqual(got.map((of) => `${of.subscriptionId} ${of.schemaVersion}`).toSorted());
    }),
    { numRuns: 500 },
  );
});
