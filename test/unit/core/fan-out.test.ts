import fc from "fast-check";
import { expect, test } from "vitest";
import { DELIVERIES_PER_PART, MAX_AT_ONCE, splitFanOut, toOwed } from "../../../src/core/fan-out.ts";
import type { MatchedDelivery } from "../../../src/core/match.ts";

const FIRST = 100;

function matched(count: number, isLane: (n: number) => boolean): MatchedDelivery[] {
  return Array.from({ length: count }, (_, n) => ({
    endpointId: `ep_${String(n).padStart(16, "0")}`,
    subscriptionId: `sub_${n}`,
    maxAgeSeconds: 1,
    endpointDisabled: n % 7 === 0,
    lane: isLane(n) ? { generation: 0 } : null,
    schemaVersion: 1,
    versionFault: null,
  }));
}

test("as many deliveries as a commit bears all commit with their event", () => {
  for (const count of [0, 1, FIRST, MAX_AT_ONCE]) {
    const all = matched(count, (n) => n % 3 === 0);
    expect(splitFanOut(all, FIRST)).toEqual({ atOnce: all, parts: [] });
  }
});

test("of one more, those in lanes and the first hundred commit with their event, and the rest is a part", () => {
  const all = matched(MAX_AT_ONCE + 1, (n) => n % 3 === 0);
  const { atOnce, parts } = splitFanOut(all, FIRST);
  expect(atOnce.slice(0, FIRST)).toEqual(all.slice(0, FIRST));
  expect(atOnce.slice(FIRST).every(({ lane }) => lane !== null)).toBe(true);
  expect(parts).toHaveLength(1);
  expect(parts[0]!.some(({ lane }) => lane !== null)).toBe(false);
});

test("when all of them go through lanes there is no rest", () => {
  const all = matched(5_000, () => true);
  expect(splitFanOut(all, FIRST)).toEqual({ atOnce: all, parts: [] });
});

test("ten thousand, a third of them strict, are 3,400 at once and seven parts", () => {
  const { atOnce, parts } = splitFanOut(
    matched(10_000, (n) => n % 3 === 0),
    FIRST,
  );
  expect(atOnce).toHaveLength(3_334 + 66);
  expect(parts.map(({ length }) => length)).toEqual([1000, 1000, 1000, 1000, 1000, 1000, 600]);
});

test("whatever matches, each delivery is in one place, in its order, no part is empty or too long, and none has a lane", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 4_000 }),
      fc.integer({ min: 1, max: 9 }),
      fc.nat(200),
      (count, every, first) => {
        const all = matched(count, (n) => n % every === 0);
        const { atOnce, parts } = splitFanOut(all, first);
        const place = new Map(all.map((delivery, n) => [delivery, n]));
        for (const some of [atOnce, parts.flat()]) {
          const places = some.map((delivery) => place.get(delivery)!);
          expect(places).toEqual(places.toSorted((a, b) => a - b));
        }
        expect(new Set([...atOnce, ...parts.flat()]).size).toBe(count);
        expect(atOnce.length + parts.flat().length).toBe(count);
        expect(parts.every(({ length }) => length > 0 && length <= DELIVERIES_PER_PART)).toBe(true);
        expect(parts.flat().every(({ lane }) => lane === null)).toBe(true);
      },
    ),
    { numRuns: 30 },
  );
});

test("what is kept of a delivery until it is a row is what it takes from the moment of acceptance", () => {
  const [delivery] = matched(1, () => false);
  const { endpointId, subscriptionId } = delivery!;
  expect(toOwed({ ...delivery!, schemaVersion: 3 })).toEqual([endpointId, subscriptionId, 3]);
  const failed = { ...delivery!, schemaVersion: 4, versionFault: "version_retired" as const };
  expect(toOwed(failed)).toEqual([endpointId, subscriptionId, 4, "version_retired"]);
});
