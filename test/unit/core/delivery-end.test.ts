import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decideAfterAttempt, relayFaultDelayMs, type ClosedAttempt } from "../../../src/core/delivery-end.ts";
import type { AttemptOutcome } from "../../../src/core/outcome.ts";
import { DEFAULT_RETRY_POLICY, deadlineMs, retryDelayMs } from "../../../src/core/retry-policy.ts";

const SEED = { seed: 20_264, numRuns: 500 };
const T0 = 1_790_000_000_000;
const HOUR = 3_600_000;

const ok200: AttemptOutcome = { outcomeClass: "success", errorClass: null, statusCode: 200 };
const http500: AttemptOutcome = { outcomeClass: "transient", errorClass: "http_5xx", statusCode: 500 };
const http404: AttemptOutcome = { outcomeClass: "transient", errorClass: "http_4xx", statusCode: 404 };
const timeout: AttemptOutcome = { outcomeClass: "unreachable", errorClass: "timeout", statusCode: null };
const internal: AttemptOutcome = { outcomeClass: "unreachable", errorClass: "internal", statusCode: null };
const abandoned: AttemptOutcome = { outcomeClass: "unreachable", errorClass: "abandoned", statusCode: null };

/** A first attempt that ended a second after its delivery was due, with no jitter. */
function closed(over: Partial<ClosedAttempt>): ClosedAttempt {
  return {
    outcome: http500,
    policy: { ...DEFAULT_RETRY_POLICY, jitter: 0 },
    failureCount: 0,
    sameAnswerCount: 1,
    retryAfterMs: null,
    endedAtMs: T0 + 1_000,
    scheduledAtMs: T0,
    eventExpiresAtMs: T0 + 30 * 24 * HOUR,
    relayFaultCount: 0,
    relayFaultsSinceMs: null,
    isLast: false,
    random: 0.5,
    ...over,
  };
}

/** A window that closes `leftMs` after the attempt's end. */
function closedWithLeft(leftMs: number, over: Partial<ClosedAttempt>): ClosedAttempt {
  return closed({ eventExpiresAtMs: T0 + 1_000 + leftMs, ...over });
}

function waitMs(attempt: ClosedAttempt): number | null {
  const step = decideAfterAttempt(attempt);
  return step.next === "retry" ? step.nextAttemptAtMs - attempt.endedAtMs : null;
}

describe("the only attempt of a test send", () => {
  test.each<[string, AttemptOutcome, string]>([
    ["a failure", http500, "exhausted"],
    ["no answer", timeout, "exhausted"],
    ["a rejection", { outcomeClass: "rejected", errorClass: "http_4xx", statusCode: 400 }, "rejected"],
    ["a 410", { outcomeClass: "rejected", errorClass: "gone", statusCode: 410 }, "gone"],
    ["a fault of ours", internal, "abandoned"],
    ["the death of its worker", abandoned, "abandoned"],
  ])("ends its delivery by %s, and disables nothing", (_name, outcome, finalOutcome) => {
    expect(decideAfterAttempt(closed({ outcome, isLast: true }))).toEqual({
      next: "dead_letter",
      finalOutcome,
      outcomeClass: outcome.outcomeClass,
      disableEndpoint: false,
    });
  });

  test("ends it by a success", () => {
    expect(decideAfterAttempt(closed({ outcome: ok200, isLast: true }))).toEqual({ next: "succeeded" });
  });
});

describe("ends", () => {
  test("a success ends the delivery", () => {
    expect(decideAfterAttempt(closed({ outcome: ok200 }))).toEqual({ next: "succeeded" });
  });

  test("a rejection is a dead letter at once; 410 also disables the endpoint", () => {
    const rejected = { outcomeClass: "rejected", errorClass: "http_4xx", statusCode: 422 } as const;
    const gone = { outcomeClass: "rejected", errorClass: "gone", statusCode: 410 } as const;
    const end = { next: "dead_letter", outcomeClass: "rejected" };
    expect(decideAfterAttempt(closed({ outcome: rejected }))).toEqual({
      ...end,
      finalOutcome: "rejected",
      disableEndpoint: false,
    });
    expect(decideAfterAttempt(closed({ outcome: gone }))).toEqual({
      ...end,
      finalOutcome: "gone",
      disableEndpoint: true,
    });
  });

  test("a 410 that the policy does not reject is retried and disables nothing", () => {
    const outcome = { outcomeClass: "transient", errorClass: "gone", statusCode: 410 } as const;
    expect(decideAfterAttempt(closed({ outcome })).next).toBe("retry");
  });

  test("the last counted attempt exhausts the delivery, whichever way it failed", () => {
    for (const outcome of [http500, timeout]) {
      expect(decideAfterAttempt(closed({ outcome, failureCount: 8 })).next).toBe("retry");
      expect(decideAfterAttempt(closed({ outcome, failureCount: 9 }))).toEqual({
        next: "dead_letter",
        finalOutcome: "exhausted",
        outcomeClass: outcome.outcomeClass,
        disableEndpoint: false,
      });
    }
  });

  test("the same answer, often enough and of a listed class, is a rejection", () => {
    const again = (sameAnswerCount: number, outcome = http404) =>
      decideAfterAttempt(closed({ outcome, sameAnswerCount, failureCount: 5 }));
    expect(again(5).next).toBe("retry");
    expect(again(6)).toEqual({
      next: "dead_letter",
      finalOutcome: "same_error",
      outcomeClass: "rejected",
      disableEndpoint: false,
    });
    expect(again(6, http500).next).toBe("retry");
  });
});

describe("retries", () => {
  test("n-th counted failure waits the n-th delay and ends a run of relay faults", () => {
    const attempt = closed({ outcome: timeout, failureCount: 2, relayFaultCount: 3 });
    expect(decideAfterAttempt(attempt)).toEqual({
      next: "retry",
      nextAttemptAtMs: attempt.endedAtMs + 300_000,
      failureCount: 3,
      relayFaultCount: 0,
    });
  });

  test("Retry-After lengthens a delay and never shortens one", () => {
    expect(waitMs(closed({ retryAfterMs: 60_000 }))).toBe(60_000);
    expect(waitMs(closed({ retryAfterMs: 1_000 }))).toBe(5_000);
    expect(waitMs(closed({ retryAfterMs: 60_000, outcome: timeout }))).toBe(5_000);
  });

  test("a Retry-After past the window leaves one attempt inside it", () => {
    expect(waitMs(closedWithLeft(HOUR, { retryAfterMs: 24 * HOUR }))).toBe(HOUR - 60_000);
    expect(waitMs(closedWithLeft(100_000, { retryAfterMs: 24 * HOUR }))).toBe(90_000);
    expect(waitMs(closedWithLeft(5_200, { retryAfterMs: 24 * HOUR }))).toBe(5_000);
  });

  test("a delay past the window is due at the deadline, where the claim expires it", () => {
    expect(waitMs(closedWithLeft(4_000, {}))).toBe(4_000);
    expect(waitMs(closedWithLeft(4_000, { retryAfterMs: 1 }))).toBe(4_000);
    expect(waitMs(closedWithLeft(-9_000, {}))).toBe(0);
  });

  test("no retry lies before the attempt's end, past the deadline, or before its delay", () => {
    const left = fc.integer({ min: -HOUR, max: 80 * HOUR });
    const asked = fc.option(fc.integer({ min: 0, max: 2 ** 31 * 1000 }));
    const failures = fc.integer({ min: 0, max: 8 });
    const chance = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
    const outcomes = fc.constantFrom(http500, timeout, internal, abandoned);
    fc.assert(
      fc.property(left, asked, failures, chance, outcomes, (leftMs, retryAfterMs, n, random, outcome) => {
        const policy = DEFAULT_RETRY_POLICY;
        const more = { retryAfterMs, failureCount: n, random, outcome, policy };
        const attempt = closedWithLeft(leftMs, more);
        const wait = waitMs(attempt) ?? -1;
        const windowMs = deadlineMs(policy, T0, attempt.eventExpiresAtMs) - attempt.endedAtMs;
        expect(Number.isInteger(wait)).toBe(true);
        expect(wait).toBeGreaterThanOrEqual(0);
        expect(wait).toBeLessThanOrEqual(Math.max(0, windowMs));
        if (outcome !== http500 && outcome !== timeout) return;
        const baseMs = retryDelayMs(policy, n + 1, random);
        expect(wait).toBeGreaterThanOrEqual(Math.min(baseMs, Math.max(0, windowMs)));
        if (baseMs < windowMs) expect(wait).toBeLessThan(windowMs);
      }),
      SEED,
    );
  });
});

describe("faults of the relay", () => {
  test("an internal fault backs off 1, 5, 15, 60, 60 s and spends no attempt", () => {
    const faults = [0, 1, 2, 3, 4].map((relayFaultCount) =>
      closed({ outcome: internal, failureCount: 9, relayFaultCount }),
    );
    expect(faults.map(waitMs)).toEqual([1_000, 5_000, 15_000, 60_000, 60_000]);
    expect(faults.map((_, n) => relayFaultDelayMs(n + 1))).toEqual(faults.map(waitMs));
    expect(faults.map(decideAfterAttempt)[4]).toMatchObject({ failureCount: 9, relayFaultCount: 5 });
  });

  test("an abandoned attempt is due again when its lease ends and spends nothing", () => {
    const attempt = closed({ outcome: abandoned, failureCount: 9, retryAfterMs: HOUR });
    expect(decideAfterAttempt(attempt)).toEqual({
      next: "retry",
      nextAttemptAtMs: attempt.endedAtMs,
      failureCount: 9,
      relayFaultCount: 1,
    });
  });

  test("only five abandoned in a row over ten minutes end a delivery", () => {
    const after = (relayFaultCount: number, spanMs: number | null) =>
      decideAfterAttempt(
        closed({
          outcome: abandoned,
          relayFaultCount,
          endedAtMs: T0 + HOUR,
          relayFaultsSinceMs: spanMs === null ? null : T0 + HOUR - spanMs,
        }),
      );
    expect(after(3, HOUR).next).toBe("retry");
    expect(after(4, 599_999).next).toBe("retry");
    expect(after(40, null).next).toBe("retry");
    expect(after(4, 600_000)).toEqual({
      next: "dead_letter",
      finalOutcome: "abandoned",
      outcomeClass: "unreachable",
      disableEndpoint: false,
    });
  });
});
