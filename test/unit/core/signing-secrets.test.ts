import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { SigningSecret } from "../../../src/core/model.ts";
import { liveSecrets, planRotation } from "../../../src/core/signing-secrets.ts";

const HOUR_MS = 3_600_000;

function secret(slot: 0 | 1, activeUntil: number | null): SigningSecret {
  return { id: `sec_${slot}`, slot, wrappedKey: new Uint8Array(), activeFrom: 0, activeUntil };
}

describe("liveSecrets", () => {
  test("a secret signs up to its end and not at it", () => {
    expect(liveSecrets([secret(0, 100)], 99)).toHaveLength(1);
    expect(liveSecrets([secret(0, 100)], 100)).toHaveLength(0);
  });

  test("the one without an end comes first, whatever its slot", () => {
    expect(liveSecrets([secret(0, 100), secret(1, null)], 0).map(({ slot }) => slot)).toEqual([1, 0]);
    expect(liveSecrets([secret(0, null), secret(1, 100)], 0).map(({ slot }) => slot)).toEqual([0, 1]);
  });
});

describe("planRotation", () => {
  test("a third live secret is refused, and with force takes the place of the oldest", () => {
    const secrets = [secret(0, 100), secret(1, null)];
    expect(planRotation(secrets, 99, false)).toEqual({ ok: false, error: "rotation_in_progress" });
    expect(planRotation(secrets, 99, true)).toEqual({ ok: true, value: { slot: 0, current: secrets[1] } });
  });

  test("the slot of an ended secret is free", () => {
    const secrets = [secret(0, 100), secret(1, null)];
    expect(planRotation(secrets, 100, false)).toEqual({ ok: true, value: { slot: 0, current: secrets[1] } });
  });

  test("through any run of rotations one or two are live, the newest has no end and its forerunner stays live", () => {
    const steps = fc.array(fc.record({ hours: fc.integer({ min: 0, max: 40 }), force: fc.boolean() }), {
      maxLength: 30,
    });
    fc.assert(
      fc.property(steps, (rotations) => {
        let now = 0;
        let secrets = [secret(0, null)];
        for (const { hours, force } of rotations) {
          now += hours * HOUR_MS;
          const before = liveSecrets(secrets, now);
          const plan = planRotation(secrets, now, force);
          if (!plan.ok) {
            expect(before).toHaveLength(2);
            continue;
          }
          const { slot, current } = plan.value;
          expect(current?.slot).not.toBe(slot);
          secrets = [secret(slot, null), ...(current ? [{ ...current, activeUntil: now + 24 * HOUR_MS }] : [])];
          const after = liveSecrets(secrets, now);
          expect(after.map((live) => live.slot)).toEqual([slot, before[0]?.slot]);
          expect(after[0]?.activeUntil).toBeNull();
        }
      }),
      { seed: 20_262, numRuns: 200 },
    );
  });
});
