import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { SourceKeys } from "../../../src/core/model.ts";
import {
  deliveryKeyContext,
  liveSourceKeys,
  planKeyRotation,
  PUBLISHED_AFTER_MS,
  sourceKeyContext,
} from "../../../src/core/source-keys.ts";
import { TIMESTAMP_TOLERANCE_SECONDS } from "../../../src/core/signed-request.ts";

const HOUR_MS = 3_600_000;
const NONE: SourceKeys = { version: 0, current: null, previous: null, previousValidUntil: null };
const key = (version: number) => Uint8Array.of(version);

/** As the ledger turns them. */
function rotated(keys: SourceKeys, version: number, previousValidUntil: number): SourceKeys {
  const previous = keys.current;
  return { version, current: key(version), previous, previousValidUntil: previous && previousValidUntil };
}

describe("liveSourceKeys", () => {
  test("a source without a key has none that verifies", () => {
    expect(liveSourceKeys(NONE, 0)).toEqual([]);
  });

  test("the present key has no end; the previous one verifies up to its end and not at it", () => {
    const keys = { version: 2, current: key(2), previous: key(1), previousValidUntil: 100 };
    const both = [
      { version: 2, wrappedKey: key(2) },
      { version: 1, wrappedKey: key(1) },
    ];
    expect(liveSourceKeys(keys, 99)).toEqual(both);
    expect(liveSourceKeys(keys, 100)).toEqual(both.slice(0, 1));
    expect(liveSourceKeys({ ...keys, previousValidUntil: null }, 0)).toEqual(both.slice(0, 1));
  });
});

describe("planKeyRotation", () => {
  test("the first key of a source needs no force, and leaves no previous one", () => {
    expect(planKeyRotation(NONE, 0, false)).toEqual({ ok: true, value: { version: 1 } });
    expect(liveSourceKeys(rotated(NONE, 1, 100), 0)).toHaveLength(1);
  });

  test("through any run of rotations the newest key verifies, with its forerunner until the end of the overlap", () => {
    const steps = fc.array(fc.record({ hours: fc.integer({ min: 0, max: 40 }), force: fc.boolean() }), {
      maxLength: 30,
    });
    fc.assert(
      fc.property(steps, (rotations) => {
        let now = 0;
        let keys = NONE;
        for (const { hours, force } of rotations) {
          now += hours * HOUR_MS;
          const before = liveSourceKeys(keys, now);
          const plan = planKeyRotation(keys, now, force);
          expect(plan.ok).toBe(before.length < 2 || force);
          if (!plan.ok) continue;
          keys = rotated(keys, plan.value.version, now + 24 * HOUR_MS);
          const live = liveSourceKeys(keys, now);
          expect(live[0]).toEqual({ version: keys.version, wrappedKey: key(keys.version) });
          expect(live.slice(1)).toEqual(before.slice(0, 1));
        }
      }),
      { seed: 20_262, numRuns: 200 },
    );
  });
});

test("a key is bound to its tenant, source and version, and is of one kind", () => {
  const contexts = [sourceKeyContext, deliveryKeyContext].flatMap((contextOf) => [
    contextOf("ten_a", "src_a", 1),
    contextOf("ten_a", "src_a", 2),
    contextOf("ten_a", "src_b", 1),
    contextOf("ten_b", "src_a", 1),
  ]);
  expect(new Set(contexts).size).toBe(8);
});

test("a public key is answered for longer than a timestamp is good for after the last signature", () => {
  expect(PUBLISHED_AFTER_MS).toBeGreaterThanOrEqual(2 * TIMESTAMP_TOLERANCE_SECONDS * 1_000);
});
