import { z } from "zod";
import { createId } from "../../core/ids.ts";
import { ERROR_CLASSES } from "../../core/outcome.ts";
import {
  MAX_SAMPLE,
  REPLAYABLE_STATUSES,
  type EventChoice,
  type Replay,
  type ReplayFilter,
} from "../../core/replay.ts";
import { RetryPolicyInput } from "../../core/retry-policy.ts";
import { AppError, invalidField } from "../app-error.ts";
import { Time } from "../field-schemas.ts";
import { parseInput } from "../parse-input.ts";
import { requireAdmin, type Principal } from "../principal.ts";
import { chooseEvents } from "./choose-events.ts";
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
  to_subscription_id: z.string().max(MAX_TEXT).nullish(),
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
  const toSubscriptionId = input.to_subscription_id ?? null;
  const filter =
    toSubscriptionId === null
      ? await resolveFilter(deps, tenantId, input.filter)
      : await resolveWindow(deps, tenantId, input.filter, toSubscriptionId);
  const includeReplayed = input.include_replayed ?? false;
  const now = deps.now();
  const { matched, matchedAtLeast, sample } =
    toSubscriptionId === null
      ? await deps.countReplayable(tenantId, filter, includeReplayed, now)
      : await countEvents(
          deps,
          { tenantId, endpointId: filter.endpointId!, subscriptionId: toSubscriptionId, filter, includeReplayed },
          now,
        );
  const replay: Replay = {
    id: createId("rpl", deps.randomBytes(10)),
    state: input.dry_run ? "dry_run" : "running",
    filter,
    toSubscriptionId,
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

type GivenFilter = z.infer<typeof ReplayFilterInput>;

function toFilter(given: GivenFilter): ReplayFilter {
  return {
    endpointId: given.endpoint_id ?? null,
    subscriptionId: given.subscription_id ?? null,
    status: given.status ?? null,
    errorClass: given.error_class ?? null,
    eventType: given.event_type ?? null,
    sourceId: given.source_id ?? null,
    createdAfter: given.created_after ?? null,
    createdBefore: given.created_before ?? null,
  };
}

/** What is filled in is events, not deliveries, and from a window that ends. */
async function resolveWindow(
  deps: ReplayDeps,
  tenantId: string,
  given: GivenFilter,
  subscriptionId: string,
): Promise<ReplayFilter> {
  const subscription = await deps.subscriptions.find(tenantId, subscriptionId);
  if (!subscription) throw invalidField("to_subscription_id", "no such subscription");
  for (const field of OF_DELIVERIES) {
    if (given[field] != null)
      throw invalidField(`filter.${field}`, "is of deliveries: it does not go with to_subscription_id");
  }
  for (const field of ["created_after", "created_before"] as const) {
    if (given[field] == null) throw invalidField(`filter.${field}`, "is required with to_subscription_id");
  }
  await requireSource(deps, tenantId, given);
  return { ...toFilter(given), endpointId: subscription.endpointId };
}

/** Also one that is deleted, whose events are still kept. */
async function requireSource(deps: ReplayDeps, tenantId: string, { source_id: id }: GivenFilter): Promise<void> {
  if (id != null && (await deps.findSourceName(tenantId, id)) === null) {
    throw invalidField("filter.source_id", "no such source: its id is meant, src_…, not its name");
  }
}

const OF_DELIVERIES = ["endpoint_id", "subscription_id", "status", "error_class"] as const;
/** What one request looks at, and reads for a filter. */
const MAX_EVENTS_COUNTED = 5_000;
const MAX_PAYLOADS_READ = 240;

async function countEvents(deps: ReplayDeps, asked: Parameters<typeof chooseEvents>[1], now: number) {
  const sample: string[] = [];
  let found = 0;
  let lookedAt = 0;
  let evaluated = 0;
  for (let after: string | null = ""; after !== null;) {
    const choice: EventChoice = await chooseEvents(deps, asked, after, now, MAX_EVENTS_COUNTED);
    found += choice.found;
    lookedAt += choice.lookedAt;
    evaluated += choice.evaluated;
    sample.push(...choice.chosen.slice(0, MAX_SAMPLE - sample.length).map(({ eventId }) => eventId));
    after = choice.afterEventId;
    if (after !== null && (lookedAt >= MAX_EVENTS_COUNTED || evaluated >= MAX_PAYLOADS_READ)) {
      return { matched: null, matchedAtLeast: found, sample };
    }
  }
  return { matched: found, matchedAtLeast: found, sample };
}

/** A subscription says which endpoint is meant: its own alone. */
async function resolveFilter(deps: ReplayDeps, tenantId: string, given: GivenFilter): Promise<ReplayFilter> {
  const filter = toFilter(given);
  await requireSource(deps, tenantId, given);
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
