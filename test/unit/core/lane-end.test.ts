import { describe, expect, test } from "vitest";
import { endOfWait, type HeadEnd, type WaitingHead } from "../../../src/core/lane-end.ts";
import { DEFAULT_RETRY_POLICY } from "../../../src/core/retry-policy.ts";

const T0 = 1_790_000_000_000;
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/** Let through at T0; may be two minutes old and be held for one. */
function waiting(over: Partial<WaitingHead> = {}): WaitingHead {
  return {
    scheduledAt: T0,
    expiresAt: T0 + 30 * DAY_MS,
    policy: { ...DEFAULT_RETRY_POLICY, max_age_seconds: 120 },
    blocked: false,
    endpointDisabled: false,
    endpointDeleted: false,
    pausedAt: null,
    resumedAt: null,
    maxHeadHoldSeconds: null,
    ...over,
  };
}

const EXPIRED: HeadEnd = { status: "expired", finalOutcome: "expired" };
const HELD: HeadEnd = { status: "dead_letter", finalOutcome: "held_too_long" };
const DELETED: HeadEnd = { status: "failed", finalOutcome: "endpoint_deleted" };
const SOON: Partial<WaitingHead> = { expiresAt: T0 + MINUTE_MS };

/** What a head's wait ends in, and the first moment at which it does, in ms after T0. */
test.each<[string, Partial<WaitingHead>, HeadEnd, number]>([
  ["its age", {}, EXPIRED, 2 * MINUTE_MS],
  ["its age, from the resume on", { resumedAt: T0 + 5_000 }, EXPIRED, 2 * MINUTE_MS + 5_000],
  ["its age, where the resume was before it was let through", { resumedAt: T0 - 5_000 }, EXPIRED, 2 * MINUTE_MS],
  ["its age, also while its endpoint is disabled", { endpointDisabled: true }, EXPIRED, 2 * MINUTE_MS],
  [
    "its age, while its endpoint is disabled and paused",
    { endpointDisabled: true, pausedAt: T0 },
    EXPIRED,
    2 * MINUTE_MS,
  ],
  ["the end of its event, before its age", SOON, EXPIRED, MINUTE_MS],
  ["the end of its event, though its lane never let it through", { ...SOON, scheduledAt: null }, EXPIRED, MINUTE_MS],
  ["the end of its event, though paused", { ...SOON, pausedAt: T0 }, EXPIRED, MINUTE_MS],
  ["the end of its event, though blocked", { ...SOON, blocked: true }, EXPIRED, MINUTE_MS],
  ["the longest hold of a head", { maxHeadHoldSeconds: 60 }, HELD, MINUTE_MS],
  ["the longest hold, from the resume on", { maxHeadHoldSeconds: 60, resumedAt: T0 + 7_000 }, HELD, MINUTE_MS + 7_000],
  ["its age, where that and the longest hold are the same", { maxHeadHoldSeconds: 120 }, EXPIRED, 2 * MINUTE_MS],
])("a wait ends with %s, and not a millisecond before", (_with, over, end, afterMs) => {
  expect(endOfWait(waiting(over), T0 + afterMs - 1)).toBeNull();
  expect(endOfWait(waiting(over), T0 + afterMs)).toEqual(end);
});

describe("no clock but the event's runs", () => {
  test.each<[string, Partial<WaitingHead>]>([
    ["before the lane lets a head through", { scheduledAt: null }],
    ["while the endpoint is paused", { pausedAt: T0 + 1 }],
    ["while the lane is blocked", { blocked: true }],
  ])("%s", (_when, over) => {
    expect(endOfWait(waiting({ maxHeadHoldSeconds: 1, ...over }), T0 + 29 * DAY_MS)).toBeNull();
  });
});

test("a deleted endpoint ends every wait at once, whatever else holds", () => {
  for (const over of [{}, { pausedAt: T0 }, { blocked: true }, { scheduledAt: null }, { expiresAt: T0 - 1 }]) {
    expect(endOfWait(waiting({ ...over, endpointDeleted: true }), T0)).toEqual(DELETED);
  }
});
