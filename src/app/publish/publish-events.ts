import type { FanOutPart } from "../../core/fan-out.ts";
import { createEventIds, deliveryId } from "../../core/ids.ts";
import type { Event } from "../../core/model.ts";
import { sha256Hex } from "../../core/sha256.ts";
import { AppError } from "../app-error.ts";
import { retrying } from "../retrying.ts";
import type { Clock, Runtime } from "../runtime.ts";
import type { Accepted } from "./accepted.ts";
import { planPublish, type FailedFilter, type Plan, type PlannedDelivery } from "./plan-publish.ts";
import {
  isPresent,
  reloadPublisher,
  type PublishConfig,
  type Publisher,
  type PublishConfigDeps,
} from "./publish-config.ts";
import type { PublishItem } from "./publish-input.ts";
import { orRefusal, orUnavailable } from "./refusals.ts";
import { answerRefusedKeys, dropObject, settle, type KeyHolder, type SettleDeps } from "./settle-publish.ts";

export interface PublishDeps
  extends PublishConfigDeps, SettleDeps, Clock, Pick<Runtime, "now" | "randomBytes" | "sleep"> {
  maxPayloadBytes: number;
  retentionDays: number;
  putPayloads(objectKey: string, bytes: Uint8Array): Promise<void>;
  commitPublish(
    tenantId: string,
    revision: number,
    events: Event[],
    deliveries: PlannedDelivery[],
    now: number,
    parts: FanOutPart[],
    failedFilters: FailedFilter[],
  ): Promise<{ stale: true } | { stale: false; holders: KeyHolder[] }>;
}

/** The configuration may change under a publish; after this many changes in a row something else is wrong. */
const MAX_RELOADS = 5;

/**
 * Takes events: checked each on its own, payloads in one R2 object, then events and deliveries in one commit; of a large
 * fan-out those that are ordered, and a list of the rest. Answers one result an item, in order; when it returns, what it
 * accepted is durable. Two storage trips when the configuration is known. Throws `unavailable` when a store refuses, with
 * nothing acknowledged.
 */
export async function publishEvents(
  deps: PublishDeps,
  publisher: Publisher,
  items: (PublishItem | AppError)[],
  relayRegion: string | null,
  hopCount = 0,
): Promise<(Accepted | AppError)[]> {
  const now = deps.now();
  const ids = createEventIds(now, deps.randomBytes(10), items.length);
  const hashes = await Promise.all(
    items.map(async (item) => {
      if (item instanceof AppError) return { payload: "", variants: [] };
      const variants = item.variants ?? [];
      return {
        payload: await sha256Hex(item.payload),
        variants: await Promise.all(variants.map(({ payload }) => (payload ? sha256Hex(payload) : ""))),
      };
    }),
  );

  let current = publisher;
  for (let reloads = 0; reloads <= MAX_RELOADS; reloads++) {
    const plan = orRefusal(() =>
      planPublish(deps, current, items, ids, hashes, { relayRegion, hopCount }, now, reloads),
    );
    if (plan instanceof AppError || plan.events.length === 0) {
      // Refusals are decided by the configuration too, and no commit has proved that what was remembered, the key among it,
      // is the present one. One row says whether it is: a producer that goes on sending what is refused must not have all of a
      // tenant's subscriptions read each time.
      if (reloads === 0 && !(await isPresent(deps, current))) {
        current = await reloadPublisher(deps, current.ref);
        continue;
      }
      if (plan instanceof AppError) throw plan;
      await answerRefusedKeys(deps, plan, now);
      return plan.results;
    }
    await orUnavailable(() => retrying(deps.sleep, () => deps.putPayloads(plan.objectKey, plan.bytes)));
    const commit = await orUnavailable(() => commitPlan(deps, current.config, plan, now));
    if (!commit.stale) {
      const results = await settle(deps, plan, commit.holders);
      await answerRefusedKeys(deps, plan, now);
      return results;
    }
    dropObject(deps, plan);
    current = await reloadPublisher(deps, current.ref);
  }
  throw new AppError("unavailable", "The tenant's configuration is changing too fast. Try again.");
}

/** Rings even when no try was confirmed, since one may have taken effect; a doorbell for a row that is not there is dropped. */
async function commitPlan(deps: PublishDeps, { tenantId, revision }: PublishConfig, plan: Plan, now: number) {
  const { events, deliveries, parts, failedFilters } = plan;
  try {
    return await retrying(deps.sleep, () =>
      deps.commitPublish(tenantId, revision, events, deliveries, now, parts, failedFilters),
    );
  } catch (error) {
    const ids = deliveries.map((delivery) => deliveryId({ ...delivery, replayNo: 0 }));
    deps.announce(ids.map((id) => ({ tenantId, deliveryId: id, attemptNumber: 1 })));
    const fannedOut = new Set(parts.map(({ eventId }) => eventId));
    if (fannedOut.size > 0) deps.announceFanOuts([...fannedOut].map((eventId) => ({ tenantId, eventId })));
    throw error;
  }
}
