import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  DEFAULT_RETRY_POLICY,
  RetryPolicy,
  RetryPolicyInput,
  deadlineMs,
  mergeRetryPolicy,
  retryDelayMs,
} from "../../../src/core/retry-policy.ts";

const SEED = { seed: 20_261, numRuns: 200 };
const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const input: fc.Arbitrary<RetryPolicyInput> = fc.record(
  {
    delays_seconds: fc.array(fc.integer({ min: 0, max: 604_800 }), { minLength: 1, maxLength: 5 }),
    jitter: fc.double({ min: 0, max: 1, noNaN: true }),
    max_attempts: fc.integer({ min: 1, max: 50 }),
    max_age_seconds: fc.double({ min: 1, max: 2_592_000, noNaN: true }),
    same_error_limit: fc.integer({ min: 2, max: 50 }),
    same_error_classes: fc.constantFrom([], ["http_5xx" as const]),
    reject_statuses: fc.array(fc.integer({ min: 300, max: 599 }), { maxLength: 5 }),
  },
  { requiredKeys: [] },
);

describe("the schema", () => {
  test("accepts the default policy as it stands in the contract", () => {
    expect(RetryPolicy.parse(DEFAULT_RETRY_POLICY)).toEqual(DEFAULT_RETRY_POLICY);
    expect(DEFAULT_RETRY_POLICY.delays_seconds).toHaveLength(9);
  });

  test("accepts any part of a policy, fractions where time is meant", () => {
    for (const part of [{}, { delays_seconds: [0.25, 0] }, { max_age_seconds: 1.5 }, { jitter: 1 }]) {
      expect(RetryPolicyInput.safeParse(part).success, JSON.stringify(part)).toBe(true);
    }
  });

  test.each([
    { delay_seconds: [1] },
    { delays_seconds: [] },
    { delays_seconds: [-1] },
    { delays_seconds: [604_801] },
    { delays_seconds: Array.from({ length: 51 }, () => 1) },
    { delays_seconds: [Number.NaN] },
    { jitter: 1.01 },
    { max_attempts: 0 },
    { max_attempts: 51 },
    { max_attempts: 1.5 },
    { max_age_seconds: 0.5 },
    { max_age_seconds: 2_592_001 },
    { same_error_limit: 1 },
    { same_error_classes: ["http_2xx"] },
    { reject_statuses: [200] },
    { reject_statuses: [600] },
    { jitter: null },
  ])("refuses $0", (part) => {
    expect(RetryPolicyInput.safeParse(part).success).toBe(false);
  });
});

describe("merging", () => {
  test("nothing over a policy is that policy", () => {
    expect(mergeRetryPolicy(DEFAULT_RETRY_POLICY, null)).toEqual(DEFAULT_RETRY_POLICY);
    const unsaid = { jitter: undefined };
    expect(mergeRetryPolicy(DEFAULT_RETRY_POLICY, unsaid)).toEqual(DEFAULT_RETRY_POLICY);
  });

  test("is idempotent, gives a whole valid policy, and keeps what was said", () => {
    fc.assert(
      fc.property(input, (over) => {
        const merged = mergeRetryPolicy(DEFAULT_RETRY_POLICY, over);
        expect(mergeRetryPolicy(merged, over)).toEqual(merged);
        expect(RetryPolicy.parse(merged)).toEqual(merged);
        expect(merged).toMatchObject(over);
      }),
      SEED,
    );
  });
});

describe("the delay", () => {
  test("200 draws lie within 20 % of the base and use both halves", () => {
    const draws = fc.sample(fc.integer({ min: 0, max: 999_999 }), { seed: 7, numRuns: 200 });
    const delays = draws.map((n) => retryDelayMs(DEFAULT_RETRY_POLICY, 2, n / 1_000_000));
    expect(Math.min(...delays)).toBeGreaterThanOrEqual(24_000);
    expect(Math.max(...delays)).toBeLessThanOrEqual(36_000);
    const early = delays.filter((delay) => delay < 30_000).length;
    expect(early).toBeGreaterThan(50);
    expect(early).toBeLessThan(150);
  });

  test("n-th failure takes the n-th delay; past the last the last repeats", () => {
    const policy = { ...DEFAULT_RETRY_POLICY, jitter: 0, delays_seconds: [0.5, 2, 7] };
    const delays = [1, 2, 3, 4, 50].map((n) => retryDelayMs(policy, n, 0.99));
    expect(delays).toEqual([500, 2_000, 7_000, 7_000, 7_000]);
  });

  test("is a whole number of milliseconds inside the jitter for every policy", () => {
    fc.assert(
      fc.property(input, fc.integer({ min: 1, max: 60 }), random, (over, failure, chance) => {
        const policy = mergeRetryPolicy(DEFAULT_RETRY_POLICY, over);
        const delay = retryDelayMs(policy, failure, chance);
        const base = 1000 * (policy.delays_seconds[failure - 1] ?? policy.delays_seconds.at(-1) ?? 0);
        expect(Number.isInteger(delay)).toBe(true);
        expect(Math.abs(delay - base)).toBeLessThanOrEqual(base * policy.jitter + 1);
      }),
      SEED,
    );
  });
});

test("the deadline is the policy's age or the event's expiry, whichever is earlier", () => {
  const policy = { ...DEFAULT_RETRY_POLICY, max_age_seconds: 1.5 };
  expect(deadlineMs(policy, 10_000, 50_000)).toBe(11_500);
  expect(deadlineMs(policy, 10_000, 11_000)).toBe(11_000);
});
