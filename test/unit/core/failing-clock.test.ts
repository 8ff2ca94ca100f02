import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { clockMark, disablesAt, mayDisable, mayTellOfFailing } from "../../../src/core/failing-clock.ts";
import { classifyOutcome, ERROR_CLASSES, OUTCOME_CLASSES, type WireResult } from "../../../src/core/outcome.ts";

describe("what an attempt says of its endpoint", () => {
  const policy = { reject_statuses: [400, 410, 422] };
  const answered = (status: number): WireResult => ({ kind: "response", status, bodyComplete: true });
  test.each<[string, WireResult, string | null]>([
    ["200", answered(200), "success"],
    ["204", answered(204), "success"],
    ["301", answered(301), "failure"],
    ["400", answered(400), "failure"],
    ["410", answered(410), "failure"],
    ["429", answered(429), "failure"],
    ["503", answered(503), "failure"],
    ["530", answered(530), "failure"],
    ["a 200 that was cut off", { kind: "response", status: 200, bodyComplete: false }, "failure"],
    ["a timeout", { kind: "timeout", status: 200 }, "failure"],
    ["a refused connection", { kind: "thrown", message: "ECONNREFUSED" }, "failure"],
    ["a fault of ours", { kind: "internal" }, null],
  ])("%s", (_name, wire, mark) => {
    const outcome = classifyOutcome(wire, policy);
    const [first, later] = [0, 1].map((failureCount) => ({ isTestSend: false, isRetried: true, failureCount }));
    expect(clockMark(outcome, later!)).toBe(mark);
    expect(clockMark(outcome, first!)).toBe(mark === "failure" ? "first_failure" : mark);
    expect(clockMark(outcome, { ...first!, isRetried: false })).toBe(mark);
    expect(clockMark(outcome, { ...first!, isTestSend: true })).toBeNull();
  });

  test("is a success or a failure for every outcome but faults of ours, and nothing for a test", () => {
    for (const outcomeClass of OUTCOME_CLASSES) {
      for (const errorClass of [...ERROR_CLASSES, null]) {
        const isOurs = errorClass === "internal" || errorClass === "abandoned";
        const outcome = { outcomeClass, errorClass, statusCode: null };
        const mark = outcomeClass === "success" ? "success" : "failure";
        const last = { isTestSend: false, isRetried: false, failureCount: 0 };
        expect(clockMark(outcome, last)).toBe(isOurs ? null : mark);
        expect(clockMark(outcome, { ...last, isTestSend: true })).toBeNull();
      }
    }
  });
});

test("an endpoint that does not fail, or is never to be disabled for it, has no such moment", () => {
  expect(disablesAt(null, 3_600)).toBeNull();
  expect(disablesAt(1_000, null)).toBeNull();
  expect(disablesAt(1_000, 3_600)).toBe(3_601_000);
});

test("a failure disables from that moment on, and never before it", () => {
  fc.assert(
    fc.property(fc.nat(1e9), fc.nat(1e6), fc.nat(2e9), (since, seconds, requestedAt) => {
      expect(mayDisable(disablesAt(since, seconds), requestedAt)).toBe(requestedAt - since >= seconds * 1_000);
      expect(mayDisable(null, requestedAt)).toBe(false);
    }),
    { seed: 40_811, numRuns: 300 },
  );
});

test("an endpoint may be told of as failing by what begins an hour after the clock did, and not while there is none", () => {
  expect(mayTellOfFailing(1_000, 3_600_999)).toBe(false);
  expect(mayTellOfFailing(1_000, 3_601_000)).toBe(true);
  expect(mayTellOfFailing(null, 9e15)).toBe(false);
});
