import { z } from "zod";
import type { Percentiles } from "../../app/report/latency.ts";
import { ANSWERS } from "../openapi/registries.ts";

/** In milliseconds. */
export const PercentilesAnswer = z
  .object({
    count: z.int(),
    p50: z.int().nullable(),
    p95: z.int().nullable(),
    p99: z.int().nullable(),
  })
  .register(ANSWERS, { id: "Percentiles" });

export function presentPercentiles({ count, p50, p95, p99 }: Percentiles): z.infer<typeof PercentilesAnswer> {
  return { count, p50, p95, p99 };
}
