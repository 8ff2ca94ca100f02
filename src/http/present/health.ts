import { z } from "zod";
import { HEALTH_STATES, type Health } from "../../core/health.ts";
import { ERROR_CLASSES } from "../../core/outcome.ts";
import { ANSWERS } from "../openapi/registries.ts";
import { known, time } from "./fields.ts";
import { presentTime } from "./time.ts";

export const HealthAnswer = z
  .object({
    state: known(HEALTH_STATES),
    why: z.string(),
    window: z
      .object({ attempts: z.int(), from: time.nullable(), to: time.nullable() })
      .register(ANSWERS, { id: "HealthWindow" }),
    success_rate: z.number().nullable(),
    p50_ms: z.int().nullable(),
    p95_ms: z.int().nullable(),
    consecutive_failures: z.int(),
    last_success_at: time.nullable(),
    last_failure_at: time.nullable(),
    last_error_class: known(ERROR_CLASSES).nullable(),
    last_status_code: z.int().nullable(),
    failing_since: time.nullable(),
    disables_at: time.nullable(),
  })
  .register(ANSWERS, { id: "EndpointHealth" });
type HealthAnswer = z.infer<typeof HealthAnswer>;

export function presentHealth(health: Health): HealthAnswer {
  const { attempts, from, to } = health.window;
  return {
    state: health.state,
    why: health.why,
    window: { attempts, from: presentTime(from), to: presentTime(to) },
    success_rate: health.successRate,
    p50_ms: health.p50Ms,
    p95_ms: health.p95Ms,
    consecutive_failures: health.consecutiveFailures,
    last_success_at: presentTime(health.lastSuccessAt),
    last_failure_at: presentTime(health.lastFailureAt),
    last_error_class: health.lastErrorClass,
    last_status_code: health.lastStatusCode,
    failing_since: presentTime(health.failingSince),
    disables_at: presentTime(health.disablesAt),
  };
}
