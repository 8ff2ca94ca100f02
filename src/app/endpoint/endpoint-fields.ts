import { z } from "zod";
import { RetryPolicyInput } from "../../core/retry-policy.ts";
import { MAX_DISABLE_AFTER_FAILING_SECONDS, MIN_DISABLE_AFTER_FAILING_SECONDS } from "../../core/failing-clock.ts";
import { PAYLOAD_FORMATS } from "../../core/outbound.ts";
import { MAX_RATE_PER_SECOND } from "../../core/lane-pace.ts";
import { checkDestination, type DestinationOptions } from "../../core/url-guard.ts";
import { invalidField } from "../app-error.ts";
import { DisplayName } from "../field-schemas.ts";
import { HeadersInput } from "./header-input.ts";

/** A lane runs in one object, whose memory bounds what it can have under way. */
const MAX_CONCURRENCY = 100;

/** What creating and changing an endpoint have in common. */
export const ENDPOINT_FIELDS = {
  name: DisplayName.nullish(),
  ordering_mode: z.enum(["unordered", "strict", "keyed"]).optional(),
  concurrency_cap: z.int().min(1).max(MAX_CONCURRENCY).nullish(),
  rate_limit_per_second: z.int().min(1).max(MAX_RATE_PER_SECOND).nullish(),
  max_head_hold_seconds: z.int().min(1).max(2_592_000).nullish(),
  retry_policy: RetryPolicyInput.nullish(),
  payload_format: z.enum(PAYLOAD_FORMATS).optional(),
  source_signatures: z.boolean().optional(),
  headers: HeadersInput.nullish(),
  timeout_ms: z.int().min(1000).max(30_000).optional(),
  on_exhausted: z.enum(["advance", "block"]).optional(),
  disable_after_failing_seconds: z
    .int()
    .min(MIN_DISABLE_AFTER_FAILING_SECONDS)
    .max(MAX_DISABLE_AFTER_FAILING_SECONDS)
    .nullish(),
};

/** The URL in the form it is stored and called in. */
export function acceptUrl(url: string, rules: DestinationOptions): string {
  const checked = checkDestination(url, rules);
  if (!checked.ok) throw invalidField("url", checked.error.message);
  return checked.value.url;
}
