import { describe, expect, test } from "vitest";
import { decideClaim, type DeliveryState } from "../../../src/core/claim.ts";
import { DELIVERY_STATUSES } from "../../../src/core/model.ts";
import { DEFAULT_RETRY_POLICY } from "../../../src/core/retry-policy.ts";

const T0 = 1_790_000_000_000;
const NOW = T0 + 1_000;
const DAY_MS = 86_400_000;
const DEADLINE = T0 + 3 * DAY_MS;

/** Due for its first attempt. */
function state(over: Partial<DeliveryState>): DeliveryState {
  return {
    status: "pending",
    attemptCount: 0,
    nextAttemptAt: NOW,
    scheduledAt: T0,
    expiresAt: T0 + 30 * DAY_MS,
    policy: DEFAULT_RETRY_POLICY,
    held: false,
    endpointRoute: "queue",
    endpointPaused: false,
    endpointDisabled: false,
    endpointDeleted: false,
    ...over,
  };
}

const DROP = { decision: "drop" };
const DELETED = { decision: "end", status: "failed", finalOutcome: "endpoint_deleted" };
const EXPIRED = { decision: "end", status: "expired", finalOutcome: "expired" };
const ATTEMPT = { decision: "attempt" };

/** Everything that can be the matter with a delivery, the weightiest first, and what is done about it. */
const MATTERS: { name: string; over: Partial<DeliveryState>; decision: object }[] = [
  { name: "rung for an attempt that was made", over: { attemptCount: 2 }, decision: DROP },
  { name: "rung for an attempt that is not the next", over: { attemptCount: 0 }, decision: DROP },
  { name: "in a lane", over: { held: true, endpointRoute: "lane" }, decision: { decision: "wake" } },
  { name: "endpoint deleted", over: { endpointDeleted: true }, decision: DELETED },
  { name: "expired", over: { expiresAt: NOW }, decision: EXPIRED },
  { name: "endpoint disabled", over: { endpointDisabled: true }, decision: { decision: "hold", holdUntil: DEADLINE } },
  {
    name: "endpoint paused",
    over: { endpointPaused: true },
    decision: { decision: "hold", holdUntil: T0 + 30 * DAY_MS },
  },
  { name: "held", over: { held: true }, decision: DROP },
  { name: "without a next attempt", over: { nextAttemptAt: null }, decision: DROP },
  { name: "due later", over: { nextAttemptAt: NOW + 7 }, decision: { decision: "wait", delayMs: 7 } },
];
const RUNG_FOR = 2;

describe("every mixture of matters", () => {
  // Each subset of the matters; of two that set the same field the weightier one stands.
  const subsets = Array.from({ length: 2 ** MATTERS.length }, (_, bits) =>
    MATTERS.filter((_, index) => bits & (1 << index)),
  );

  test("the weightiest decides, whatever else is the matter", () => {
    for (const matters of subsets) {
      const over = Object.assign({ attemptCount: 1 }, ...matters.map(({ over }) => over).toReversed());
      const weightiest = matters[0]?.decision ?? ATTEMPT;
      const names = matters.map(({ name }) => name).join(", ");
      expect(decideClaim(state(over), RUNG_FOR, NOW), names).toEqual(weightiest);
    }
  });

  test("what is not pending is dropped, whatever is the matter", () => {
    for (const status of DELIVERY_STATUSES.filter((status) => status !== "pending")) {
      for (const matters of subsets) {
        const over = Object.assign({ attemptCount: 1, status }, ...matters.map(({ over }) => over).toReversed());
        expect(decideClaim(state(over), RUNG_FOR, NOW), status).toEqual(DROP);
      }
    }
  });
});

describe("limits", () => {
  test("the due moment itself is due", () => {
    expect(decideClaim(state({ nextAttemptAt: NOW }), 1, NOW)).toEqual(ATTEMPT);
    expect(decideClaim(state({ nextAttemptAt: NOW + 1 }), 1, NOW)).toEqual({ decision: "wait", delayMs: 1 });
  });

  test("the deadline itself is past, a millisecond before it an attempt is made", () => {
    expect(decideClaim(state({}), 1, DEADLINE)).toEqual(EXPIRED);
    expect(decideClaim(state({}), 1, DEADLINE - 1)).toEqual(ATTEMPT);
  });

  test("a hold ends at the policy's deadline or with the event, whichever comes first", () => {
    const disabled = { endpointDisabled: true };
    expect(decideClaim(state(disabled), 1, NOW)).toEqual({ decision: "hold", holdUntil: DEADLINE });
    const short = { ...disabled, expiresAt: NOW + 5 };
    expect(decideClaim(state(short), 1, NOW)).toEqual({ decision: "hold", holdUntil: NOW + 5 });
  });

  test("the age runs from when a delivery was first eligible", () => {
    const policy = { ...DEFAULT_RETRY_POLICY, max_age_seconds: 1.5 };
    expect(decideClaim(state({ policy }), 1, T0 + 1_499)).toEqual(ATTEMPT);
    expect(decideClaim(state({ policy }), 1, T0 + 1_500)).toEqual(EXPIRED);
    expect(decideClaim(state({ policy, scheduledAt: T0 + 600 }), 1, T0 + 1_500)).toEqual(ATTEMPT);
  });
});
