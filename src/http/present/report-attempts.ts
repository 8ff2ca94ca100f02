import { z } from "zod";
import type { AttemptGroup } from "../../app/report/attempts.ts";
import { formatTime } from "../../core/timestamps.ts";
import { ANSWERS } from "../openapi/registries.ts";
import { time } from "./fields.ts";
import { PercentilesAnswer, presentPercentiles } from "./percentiles.ts";
import { reportOf } from "./report.ts";

const AttemptGroupAnswer = z
  .object({
    worker_id: z.string().nullable(),
    relay_region: z.string().nullable(),
    succeeded: z.int(),
    open: z.int(),
    transient: z.int(),
    rejected: z.int(),
    unreachable: z.int(),
    relay_faults: z.int(),
    last_at: time,
    latency_ms: PercentilesAnswer,
  })
  .register(ANSWERS, { id: "AttemptGroup" });

export const AttemptsAnswer = reportOf("Attempts", AttemptGroupAnswer, { groups: z.int() });

export function presentAttemptGroup(group: AttemptGroup): z.infer<typeof AttemptGroupAnswer> {
  return {
    worker_id: group.by === "worker_id" ? group.value : null,
    relay_region: group.by === "relay_region" ? group.value : null,
    succeeded: group.succeeded,
    open: group.open,
    transient: group.transient,
    rejected: group.rejected,
    unreachable: group.unreachable,
    relay_faults: group.relayFaults,
    last_at: formatTime(group.lastAt),
    latency_ms: presentPercentiles(group.latency),
  };
}
