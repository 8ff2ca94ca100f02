import { PUBLISH_PERIOD_SECONDS, type Plan, type PublishLimits } from "../../core/publish-limits.ts";
import { AppError } from "../app-error.ts";
import {
  publisherKey,
  reloadPublisher,
  remember,
  type Publisher,
  type PublishConfigDeps,
  type PublisherRef,
} from "./publish-config.ts";

export type LimitName = "key" | "tenant";

export interface PublishLimitDeps extends PublishConfigDeps {
  now(): number;
  /** Null where nothing is limited. */
  publishLimits: PublishLimits | null;
  /** Counts one more publish request of a key or tenant; false when it is one too many. */
  countPublish(plan: Plan, whose: LimitName, id: string): Promise<boolean>;
  logFault(what: string, error: unknown): void;
}

/** Refuses a publish for its rate. Carries what the caller may be told of the limits. */
export class RateLimited extends AppError {
  readonly exceeded: LimitName;
  readonly policies: { name: LimitName; quota: number }[];
  readonly periodSeconds = PUBLISH_PERIOD_SECONDS;

  constructor(exceeded: LimitName, { perKey, perTenant }: PublishLimits[Plan]) {
    const quota = exceeded === "key" ? perKey : perTenant;
    super(
      "rate_limited",
      `More than ${quota} publish requests of this ${exceeded} in ${PUBLISH_PERIOD_SECONDS} seconds. Nothing was stored. Wait, or publish in batches.`,
    );
    this.exceeded = exceeded;
    this.policies = [
      { name: "key", quota: perKey },
      { name: "tenant", quota: perTenant },
    ];
  }
}

const MAX_REMEMBERED_REFUSALS = 2_000;

/**
 * Lets a publish go on within the limits of its key and of its tenant, which cost no storage trip. The key is asked first:
 * one that is over its own limit spends nothing of the tenant's, and a token of nobody never comes here. Throws
 * `RateLimited`.
 *
 * What is refused is never proved by a commit, and the configuration may have been remembered: once a period the key is
 * read afresh before it is refused, so that a revoked one hears that it is, and a greater plan counts.
 */
export async function admitPublisher(deps: PublishLimitDeps, publisher: Publisher): Promise<Publisher> {
  const refusal = await checkLimits(deps, publisher);
  if (!refusal) return publisher;
  const { refusedAt } = deps.publishConfigs;
  const key = counterOf(publisher.ref);
  const now = deps.now();
  if (now - (refusedAt.get(key) ?? -Infinity) < PUBLISH_PERIOD_SECONDS * 1_000) throw refusal;
  // Before the trip, so that a thousand refusals at once are one trip too.
  remember(refusedAt, key, now, MAX_REMEMBERED_REFUSALS);
  const fresh = await reloadPublisher(deps, publisher.ref);
  const again = fresh.config.plan === publisher.config.plan ? refusal : await checkLimits(deps, fresh);
  if (again) throw again;
  return fresh;
}

/** A source that signs is counted as a key of its own. */
function counterOf(ref: PublisherRef): string {
  return "signed" in ref ? ref.sourceId : publisherKey(ref);
}

/** A limiter that fails lets everything through: it guards the store, and must not be the outage itself. */
async function checkLimits(deps: PublishLimitDeps, { ref, config }: Publisher): Promise<RateLimited | null> {
  if (!deps.publishLimits) return null;
  const { plan, tenantId } = config;
  try {
    if (!(await deps.countPublish(plan, "key", counterOf(ref)))) {
      return new RateLimited("key", deps.publishLimits[plan]);
    }
    if (!(await deps.countPublish(plan, "tenant", tenantId))) {
      return new RateLimited("tenant", deps.publishLimits[plan]);
    }
  } catch (error) {
    deps.logFault("count a publish", error);
  }
  return null;
}
