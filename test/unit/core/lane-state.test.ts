import fc from "fast-check";
import { expect, test } from "vitest";
import { laneStateName, type LaneStateName } from "../../../src/core/lane-state.ts";

const T0 = 1_790_000_000_000;

/** In the order in which the first that holds is the state. */
const ORDER: LaneStateName[] = ["disabled", "paused", "blocked", "waiting", "running", "idle"];
const HEADS = {
  blocked: { status: "dead_letter", blockedSince: T0 - 9, nextAttemptAt: null },
  waiting: { status: "pending", blockedSince: null, nextAttemptAt: T0 + 1 },
  running: { status: "processing", blockedSince: null, nextAttemptAt: T0 + 45_000 },
};
type Cause = Exclude<LaneStateName, "idle">;

const standing = (causes: Cause[]) => ({
  disabledAt: causes.includes("disabled") ? T0 - 5 : null,
  pausedAt: causes.includes("paused") ? T0 - 5 : null,
  heads: causes.flatMap((cause) => (cause in HEADS ? [HEADS[cause as keyof typeof HEADS]] : [])),
});

test("of all that holds, the first of disabled, paused, blocked, waiting, running is the state; of nothing, idle", () => {
  const causes = fc.shuffledSubarray(ORDER.slice(0, -1) as Cause[]);
  fc.assert(
    fc.property(causes, (holding) => {
      const first = ORDER.find((name) => holding.includes(name as Cause)) ?? "idle";
      expect(laneStateName(standing(holding), T0)).toBe(first);
    }),
    { seed: 1, numRuns: 300 },
  );
});

test("a head that is due runs; one in flight does not wait, though the end of its lease lies ahead", () => {
  const heads = (status: string, nextAttemptAt: number | null) => [{ status, blockedSince: null, nextAttemptAt }];
  const lane = { disabledAt: null, pausedAt: null };
  expect(laneStateName({ ...lane, heads: heads("pending", T0) }, T0)).toBe("running");
  expect(laneStateName({ ...lane, heads: heads("pending", null) }, T0)).toBe("running");
  expect(laneStateName({ ...lane, heads: heads("pending", T0 + 1) }, T0)).toBe("waiting");
  expect(laneStateName({ ...lane, heads: heads("processing", T0 + 1) }, T0)).toBe("running");
});
