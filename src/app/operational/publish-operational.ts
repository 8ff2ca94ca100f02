import { hopsOf, operationalPayload, type RaisedEvent } from "../../core/operational-event.ts";
import { retentionMs } from "../../core/retention.ts";
import { formatTime } from "../../core/timestamps.ts";
import { AppError } from "../app-error.ts";
import { authorizePublisher } from "../publish/publish-config.ts";
import { publishEvents, type PublishDeps } from "../publish/publish-events.ts";
import type { PublishItem } from "../publish/publish-input.ts";

export interface PublishOperationalDeps extends PublishDeps {
  listRaised(tenantId: string, keptFrom: number, limit: number, now: number): Promise<RaisedEvent[]>;
  deleteRaised(tenantId: string, raised: RaisedEvent[]): Promise<void>;
  relayRegion: string | null;
  logFault(what: string, error: unknown): void;
}

const AT_ONCE = 100;

/**
 * Publishes what was noted of a tenant's transitions, oldest first, through the way of every other event; says whether more
 * may be waiting. Each note's id is its event's idempotency key, so that doing it again, or twice at once, tells of nothing
 * twice. Throws when a store refuses; then the notes stay. Those of a suspended tenant wait, those of a deleted one go.
 */
export async function publishOperational(deps: PublishOperationalDeps, tenantId: string): Promise<boolean> {
  const now = deps.now();
  const raised = await deps.listRaised(tenantId, now - retentionMs(deps.retentionDays), AT_ONCE, now);
  if (raised.length === 0) return false;
  // One request's events have come through as many relays.
  const told = await publishSome(deps, tenantId, raised.slice(0, lengthOfRun(raised.map(hopsOf))));
  if (told.length === 0) return false;
  await deps.deleteRaised(tenantId, told);
  return told.length < raised.length || raised.length === AT_ONCE;
}

/** Gives back what need not be published any more, which may be a first part; none while the tenant is suspended. */
async function publishSome(
  deps: PublishOperationalDeps,
  tenantId: string,
  some: RaisedEvent[],
): Promise<RaisedEvent[]> {
  try {
    const publisher = await authorizePublisher(deps, { tenantId, isRelay: true });
    const results = await publishEvents(deps, publisher, some.map(toItem), deps.relayRegion, hopsOf(some[0]!));
    for (const refusal of results) {
      // It would be refused the next time too, and must not keep those behind it.
      if (refusal instanceof AppError) deps.logFault("an operational event was refused", refusal);
    }
    return some;
  } catch (error) {
    const code = error instanceof AppError ? error.code : null;
    if (code === "tenant_suspended") return [];
    // There is no such tenant any more.
    if (code === "unauthorized") return some;
    const fewer = some.slice(0, some.length >> 1);
    if (code === "fan_out_too_large" && fewer.length > 0) return publishSome(deps, tenantId, fewer);
    throw error;
  }
}

function lengthOfRun(values: number[]): number {
  const end = values.findIndex((value) => value !== values[0]);
  return end === -1 ? values.length : end;
}

function toItem(raised: RaisedEvent): PublishItem {
  return {
    fields: { type: raised.type, occurred_at: formatTime(raised.raisedAt), idempotency_key: raised.id },
    payload: new TextEncoder().encode(JSON.stringify(operationalPayload(raised))),
    payloadIsJson: true,
    contentType: "application/json",
    contentEncoding: null,
  };
}
