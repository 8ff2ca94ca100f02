import { emptyOutbox, type OutboxRuns } from "../app/operational/empty-outbox.ts";
import type { PublishOperationalDeps } from "../app/operational/publish-operational.ts";
import { parseSettings } from "../env.ts";
import { logFault } from "../log-fault.ts";
import { createOutboxLedger } from "../storage/ledger/outbox.ts";
import { createPublishLedger } from "../storage/ledger/publish.ts";
import type { OutboxBell } from "../storage/ledger/raise.ts";
import { createPayloadStore } from "../storage/payloads.ts";
import { bounded } from "./bounded.ts";
import { createDoorbells } from "./doorbells.ts";
import { publishConfigsOf } from "./publish-configs.ts";
import { runtime } from "./runtime.ts";
import { database } from "./shards.ts";

type Context = Pick<ExecutionContext, "waitUntil" | "exports">;

const runs: OutboxRuns = new Map();

/** What publishes a shard's operational events. Their size is the relay's business, not that of a producer's limit. */
export function composeOutbox(env: Env, context: Context, shard: string): PublishOperationalDeps {
  const settings = parseSettings(env);
  const db = database(env, shard);
  return {
    ...runtime,
    ...createDoorbells(env, context, shard),
    ...createPublishLedger(db),
    ...createOutboxLedger(db),
    ...bounded(createPayloadStore(env.PAYLOADS)),
    maxPayloadBytes: Infinity,
    retentionDays: settings.RETENTION_DAYS,
    secretsKeys: settings.SECRETS_KEY,
    relayRegion: settings.RELAY_REGION,
    publishConfigs: publishConfigsOf(shard),
    background: (work) => context.waitUntil(work),
    logFault,
  };
}

/** Has what was noted for a tenant published, after whatever noted it. Nobody waits for it. */
export function createOutboxBell(env: Env, context: Context, shard: string): OutboxBell {
  return (tenantId) => context.waitUntil(emptyOutbox(composeOutbox(env, context, shard), runs, tenantId));
}
