import { z } from "zod";
import { createId } from "../../core/ids.ts";
import { ERROR_CLASSES } from "../../core/outcome.ts";
import { REPLAYABLE_STATUSES, type Replay, type ReplayFilter } from "../../core/replay.ts";
import { RetryPolicyInput } from "../../core/retry-policy.ts";
import { AppError, invalidField } from "../app-error.ts";
import { Time } from "../field-schemas.ts";
import { parseInput } from "../parse-input.ts";
import { requireAdmin, type Principal } from "../principal.ts";
import type { ReplayDeps } from "./deps.ts";

const MAX_TEXT = 128;

export const ReplayFilterInput = z
  .strictObject({
    endpoint_id: z.string().max(MAX_TEXT).nullish(),
    subscription_id: z.string().max(MAX_TEXT).nullish(),
    status: z.enum(REPLAYABLE_STATUSES).nullish(),
    error_class: z.enum(ERROR_CLASSES).nullish(),
    event_type: z.string().max(MAX_TEXT).nullish(),
    source_id: z.string().max(MAX_TEXT).nullish(),
    created_after: Time.nullish(),
    created_before: Time.nullish(),
  })
  .refine((filter) => Object.values(filter).some((value) => value != null), "must say at least one thing");

export const CreateReplayInput = z.strictObject({
  filter: ReplayFilterInput,
  retry_policy: RetryPolicyInput.nullish(),
  include_replayed: z.boolean().nullish(),
  dry_run: z.boolean().nullish(),
});

/**
 * Begins to deliver again all that ended as the filter says, as of now; or with `dry_run` says what that would be, to be started
 * later. Either way it is counted first.
 */
export async function createReplay(deps: ReplayDeps, principal: Principal, body: unknown): Promise<Replay> {
  requireAdmin(principal);
  const { tenantId } = principal;
  const input = parseInput(CreateReplayInput, body);
  const filter = await resolveFilter(deps, tenantId, input.filter);
  const includeReplayed = input.include_replayed ?? false;
  const now = deps.now();
  const { matched, matchedAtLeast, sample } = await deps.countReplayable(tenantId, filter, includeReplayed, now);
  const replay: Replay = {
    id: createId("rpl", deps.randomBytes(10)),
    state: input.dry_run ? "dry_run" : "running",
    filter,
    toSubscriptionId: null,
    retryPolicy: input.retry_policy ?? null,
    includeReplayed,
    expected: matched,
    expectedAtLeast: matchedAtLeast,
    sample,
    lookedAt: 0,
    found: 0,
    replayed: 0,
    skipped: {},
    error: null,
    createdAt: now,
    startedAt: null,
    finishedAt: null,
  };
  const stored = await deps.insertReplayJob(tenantId, replay, filter.endpointId, now);
  if (stored === null) throw tooManyRunning();
  if (stored.state === "running") deps.callWatchdog();
  return stored;
}

export function tooManyRunning(): AppError {
  return new AppError(
    "quota_exceeded",
    "The tenant has as many replays running as it may have. Wait for one, or cancel it.",
  );
}

/** A subscription says which endpoint is meant: its own alone. */
async function resolveFilter(
  deps: ReplayDeps,
  tenantId: string,
  given: z.infer<typeof ReplayFilterInput>,
): Promise<ReplayFilter> {
  const filter: ReplayFilter = {
    endpointId: given.endpoint_id ?? null,
    subscriptionId: given.subscription_id ?? null,
    status: given.status ?? null,
    errorClass: given.error_class ?? null,
    eventType: given.event_type ?? null,
    sourceId: given.source_id ?? null,
    createdAfter: given.created_after ?? null,
    createdBefore: given.created_before ?? null,
  };
  if (filter.endpointId !== null && !(await deps.endpoints.find(tenantId, filter.endpointId))) {
    throw invalidField("filter.endpoint_id", "no such endpoint");
  }
  if (filter.subscriptionId === null) return filter;
  const subscription = await deps.subscriptions.find(tenantId, filter.subscriptionId);
  if (!subscription) throw invalidField("filter.subscription_id", "no such subscription");
  if (filter.endpointId !== null && filter.endpointId !== subscription.endpointId) {
    throw invalidField("filter.subscription_id", "is not one of this endpoint's");
  }
  return { ...filter, endpointId: subscription.endpointId };
}
