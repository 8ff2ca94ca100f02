import fc from "fast-check";
import { expect, test } from "vitest";
import { DEFAULT_RETRY_POLICY, type RetryPolicy } from "../../../src/core/retry-policy.ts";
import { toRetryPolicyRow } from "../../../src/storage/config/retry-policies.ts";

test("the order in which a policy's fields were given does not change its row", async () => {
  const fields = Object.entries(DEFAULT_RETRY_POLICY);
  const row = await toRetryPolicyRow(DEFAULT_RETRY_POLICY);
  expect(row.id).toMatch(/^[0-9a-hjkmnp-tv-z]{16}$/);
  expect(JSON.parse(row.policy)).toEqual(DEFAULT_RETRY_POLICY);
  const orders = fc.shuffledSubarray(fields, { minLength: fields.length });
  await fc.assert(
    fc.asyncProperty(orders, async (shuffled) => {
      expect(await toRetryPolicyRow(Object.fromEntries(shuffled) as RetryPolicy)).toEqual(row);
    }),
    { seed: 20_262, numRuns: 30 },
  );
});

test("policies that differ in any field have different ids", async () => {
  const others: Partial<RetryPolicy>[] = [
    { delays_seconds: [5] },
    { jitter: 0.3 },
    { max_attempts: 9 },
    { max_age_seconds: 60 },
    { same_error_limit: 7 },
    { same_error_classes: [] },
    { reject_statuses: [400] },
  ];
  const rows = await Promise.all([{}, ...others].map((part) => toRetryPolicyRow({ ...DEFAULT_RETRY_POLICY, ...part })));
  expect(new Set(rows.map(({ id }) => id)).size).toBe(rows.length);
});
