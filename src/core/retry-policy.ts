import { z } from "zod";
import type { ErrorClass } from "./outcome.ts";

/** Classes of answers that have a status and a body, which can be the same again. */
const ANSWER_CLASSES = ["http_3xx", "http_4xx", "http_5xx", "rate_limited", "gone"] as const satisfies ErrorClass[];

/** A whole policy, as snapshot on a delivery. Strict: an unknown key is refused, never ignored. */
export const RetryPolicy = z.strictObject({
  /** Delay n follows the n-th counted failure; past the last the last repeats. Fractions allowed. */
  delays_seconds: z.array(z.number().min(0).max(604_800)).min(1).max(50),
  /** 0.2 spreads each delay uniformly over ±20 %. */
  jitter: z.number().min(0).max(1),
  /** Counted attempts, the first included. */
  max_attempts: z.int().min(1).max(50),
  /** Age from `scheduled_at` after which a delivery expires. Fractions allowed. */
  max_age_seconds: z.number().min(1).max(2_592_000),
  /** The same status and body this many times running ends a delivery, for these classes. */
  same_error_limit: z.int().min(2).max(50),
  same_error_classes: z.array(z.enum(ANSWER_CLASSES)).max(ANSWER_CLASSES.length),
  /** Statuses after which no retry is made. */
  reject_statuses: z.array(z.int().min(300).max(599)).max(300),
});
export type RetryPolicy = z.infer<typeof RetryPolicy>;

/** A policy as given by an operator: any part of one, to be merged over another. */
export const RetryPolicyInput = RetryPolicy.partial();
export type RetryPolicyInput = z.infer<typeof RetryPolicyInput>;

export const DEFAULT_RETRY_POLICY: RetryPolicy = {
  delays_seconds: [5, 30, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000],
  jitter: 0.2,
  max_attempts: 10,
  max_age_seconds: 259_200,
  same_error_limit: 6,
  same_error_classes: ["http_4xx"],
  reject_statuses: [400, 405, 406, 410, 411, 413, 414, 415, 422, 431, 451, 501, 505],
};

/** Whether answers of this class are compared with those before them. */
export function comparesAnswers(policy: RetryPolicy, errorClass: ErrorClass): boolean {
  return (policy.same_error_classes as readonly ErrorClass[]).includes(errorClass);
}

/** Field by field, `over` wins where it says something; lists are replaced, not joined. */
export function mergeRetryPolicy(base: RetryPolicy, over: RetryPolicyInput | null): RetryPolicy {
  const said = Object.entries(over ?? {}).filter(([, value]) => value !== undefined);
  return { ...base, ...Object.fromEntries(said) };
}

/**
 * Milliseconds (whole) to wait after a counted failure.
 * @param failureCount the failure's number among the counted ones, from 1
 * @param random a number in [0, 1)
 */
export function retryDelayMs(policy: RetryPolicy, failureCount: number, random: number): number {
  const last = policy.delays_seconds.length - 1;
  const index = Math.min(Math.max(failureCount - 1, 0), last);
  const delaySeconds = policy.delays_seconds[index] ?? 0;
  const spread = 1 + policy.jitter * (2 * random - 1);
  return Math.round(delaySeconds * 1000 * spread);
}

/**
 * The moment (ms since the epoch) from which a delivery counts as expired.
 * @param scheduledAtMs where its age clock starts
 */
export function deadlineMs(policy: RetryPolicy, scheduledAtMs: number, eventExpiresAtMs: number): number {
  const maxAgeMs = Math.round(policy.max_age_seconds * 1000);
  return Math.min(scheduledAtMs + maxAgeMs, eventExpiresAtMs);
}
