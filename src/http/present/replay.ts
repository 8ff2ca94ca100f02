import { z } from "zod";
import { ERROR_CLASSES } from "../../core/outcome.ts";
import { REPLAY_STATES, REPLAYABLE_STATUSES, type Replay } from "../../core/replay.ts";
import { formatTime } from "../../core/timestamps.ts";
import { ANSWERS } from "../openapi/registries.ts";
import { id, known, time } from "./fields.ts";
import { PartialRetryPolicy } from "./subscription.ts";
import { presentTime } from "./time.ts";

const Filter = z
  .object({
    endpoint_id: id("ep").nullable(),
    subscription_id: id("sub").nullable(),
    status: known(REPLAYABLE_STATUSES).nullable(),
    error_class: known(ERROR_CLASSES).nullable(),
    event_type: z.string().nullable(),
    source_id: id("src").nullable(),
    created_after: time.nullable(),
    created_before: time.nullable(),
  })
  .register(ANSWERS, { id: "ReplayFilter" });

export const ReplayAnswer = z
  .object({
    id: id("rpl"),
    state: z.enum(REPLAY_STATES),
    filter: Filter,
    to_subscription_id: id("sub").nullable(),
    retry_policy: PartialRetryPolicy.nullable(),
    include_replayed: z.boolean(),
    matched: z.int().nullable(),
    matched_at_least: z.int(),
    sample: z.array(z.string()),
    looked_at: z.int(),
    replayed: z.int(),
    skipped: z.record(z.string(), z.int()),
    error: z.string().nullable(),
    created_at: time,
    started_at: time.nullable(),
    finished_at: time.nullable(),
  })
  .register(ANSWERS, { id: "Replay" });
type ReplayAnswer = z.infer<typeof ReplayAnswer>;

export function presentReplay(replay: Replay): ReplayAnswer {
  const { filter, expected, expectedAtLeast, found } = replay;
  return {
    id: replay.id,
    state: replay.state,
    filter: {
      endpoint_id: filter.endpointId,
      subscription_id: filter.subscriptionId,
      status: filter.status,
      error_class: filter.errorClass,
      event_type: filter.eventType,
      source_id: filter.sourceId,
      created_after: presentTime(filter.createdAfter),
      created_before: presentTime(filter.createdBefore),
    },
    to_subscription_id: replay.toSubscriptionId,
    retry_policy: replay.retryPolicy,
    include_replayed: replay.includeReplayed,
    // Once the walk is over it is known.
    matched: replay.state === "completed" ? found : expected,
    matched_at_least: replay.state === "completed" ? found : Math.max(expectedAtLeast, found),
    sample: replay.sample,
    looked_at: replay.lookedAt,
    replayed: replay.replayed,
    skipped: replay.skipped,
    error: replay.error,
    created_at: formatTime(replay.createdAt),
    started_at: presentTime(replay.startedAt),
    finished_at: presentTime(replay.finishedAt),
  };
}
