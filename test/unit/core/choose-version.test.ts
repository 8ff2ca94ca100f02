import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { chooseVersion, isBetter, type VersionChoice } from "../../../src/core/choose-version.ts";
import { createFilterCache } from "../../../src/core/filter/filter-cache.ts";
import { createMatcher } from "../../../src/core/match.ts";
import { collectTypes } from "../../../src/core/registered-types.ts";

const SEED = { seed: 41_523, numRuns: 2_000 };

const choose = (pin: number | null, versions: number[], retired: number[] = []) =>
  chooseVersion(pin, { versions, isRetired: (version) => retired.includes(version) });

describe("one subscription gets", () => {
  test.each<[string, number | null, number[], number[], VersionChoice]>([
    ["the version it is pinned to", 3, [4, 3], [], { schemaVersion: 3, versionFault: null }],
    ["without a pin the newest, in whatever order", null, [3, 10, 4], [], { schemaVersion: 10, versionFault: null }],
    ["without a pin the newest that lives", null, [3, 4], [4], { schemaVersion: 3, versionFault: null }],
    ["nothing, pinned to what is not there", 2, [3], [], { schemaVersion: 2, versionFault: "version_not_published" }],
    ["nothing, pinned to what is retired", 3, [3, 4], [3], { schemaVersion: 3, versionFault: "version_retired" }],
    [
      "nothing, pinned to what is retired and not there",
      2,
      [3],
      [2],
      { schemaVersion: 2, versionFault: "version_retired" },
    ],
    [
      "nothing, when all there is is retired",
      null,
      [3, 4],
      [3, 4],
      { schemaVersion: 4, versionFault: "version_retired" },
    ],
  ])("%s", (_, pin, versions, retired, expected) => {
    expect(choose(pin, versions, retired)).toEqual(expected);
  });
});

test("of two choices the younger is taken for a version where there was none, and for a higher one", () => {
  const gets = (schemaVersion: number): VersionChoice => ({ schemaVersion, versionFault: null });
  const lacks = (schemaVersion: number): VersionChoice => ({ schemaVersion, versionFault: "version_not_published" });
  expect(isBetter(gets(4), gets(3))).toBe(true);
  expect(isBetter(gets(3), lacks(4))).toBe(true);
  expect(isBetter(gets(3), gets(3))).toBe(false);
  expect(isBetter(gets(3), gets(4))).toBe(false);
  expect(isBetter(lacks(4), lacks(3))).toBe(false);
  expect(isBetter(lacks(4), gets(3))).toBe(false);
});

const version = fc.integer({ min: 1, max: 5 });
const pins = fc.array(fc.tuple(fc.constantFrom("ep_a", "ep_b", "ep_c"), fc.option(version)), { maxLength: 6 });
const some = (minLength: number) => fc.uniqueArray(version, { minLength, maxLength: 4 });

test("an endpoint gets one delivery: the highest live version that a subscription of its gets, of the oldest that gets it", () => {
  fc.assert(
    fc.property(pins, some(1), some(0), (given, versions, retired) => {
      const types = collectTypes(
        retired.map((schemaVersion) => ({
          name: "order.paid",
          requiredScope: null,
          schemaVersion,
          jsonSchema: null,
          isRetired: true,
        })),
      );
      const subscriptions = given.map(([endpointId, schemaVersion], n) => ({
        id: `sub_${n}`,
        endpointId,
        eventTypePattern: "order.*",
        entitlementScope: [],
        schemaVersion,
        maxAgeSeconds: 1,
        endpointDisabled: false,
        filter: null,
        lane: null,
      }));
      const matched = createMatcher(subscriptions, types, createFilterCache())(
        "order.paid",
        versions,
        null,
      )!.deliveries;
      expect(matched.map(({ endpointId }) => endpointId)).toEqual([...new Set(given.map(([id]) => id))].toSorted());
      const live = versions.filter((version) => !retired.includes(version));
      for (const { endpointId, subscriptionId, schemaVersion, versionFault } of matched) {
        const own = subscriptions.filter((subscription) => subscription.endpointId === endpointId);
        const wanted = (pin: number | null) => (pin === null ? live : live.filter((version) => version === pin));
        const highest = Math.max(...own.flatMap((subscription) => wanted(subscription.schemaVersion)));
        if (highest > 0) {
          const oldest = own.find(
            (subscription) =>
              wanted(subscription.schemaVersion).includes(highest) &&
              (subscription.schemaVersion !== null || highest === Math.max(...live)),
          )!;
          expect({ schemaVersion, versionFault, subscriptionId }).toEqual({
            schemaVersion: highest,
            versionFault: null,
            subscriptionId: oldest.id,
          });
        } else {
          expect(versionFault).not.toBeNull();
          expect(subscriptionId).toBe(own[0]!.id);
        }
      }
    }),
    SEED,
  );
});

test("what is remembered of a type is of the versions that were carried", () => {
  const subscription = {
    id: "sub_1",
    endpointId: "ep_a",
    eventTypePattern: "*",
    entitlementScope: [],
    schemaVersion: 2,
  };
  const list = [{ ...subscription, maxAgeSeconds: 1, endpointDisabled: false, filter: null, lane: null }];
  const matcher = createMatcher(list, new Map(), createFilterCache());
  const match = (versions: number[]) => matcher("a.b", versions, null)!.deliveries;
  expect(match([1])).toMatchObject([{ versionFault: "version_not_published" }]);
  expect(match([1, 2])).toMatchObject([{ versionFault: null }]);
  expect(match([12])).toMatchObject([{ versionFault: "version_not_published" }]);
  expect(match([1, 2])).toBe(match([1, 2]));
});
