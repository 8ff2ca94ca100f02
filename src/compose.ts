/** The one place that turns Env into adapters and hands them to the use-cases. */
import { encodeRandomPart } from "./core/ids.ts";
import { coalesce } from "./app/deliver/coalesce.ts";
import { deliver, type DeliverDeps } from "./app/deliver/deliver.ts";
import { createInFlight, type Place } from "./app/deliver/in-flight.ts";
import { enterQuarantine, leaveQuarantine } from "./app/endpoint/quarantine.ts";
import type { CentralDeps, ShardDeps } from "./app/deps.ts";
import type { ExpandFanOutDeps } from "./app/publish/expand-fan-out.ts";
import type { SourcePlace } from "./app/publish/find-source-place.ts";
import { publishOperational } from "./app/operational/publish-operational.ts";
import type { LaneDeps } from "./app/lane/lane-state.ts";
import type { WatchDeps } from "./app/watch/tick.ts";
import { bounded, within } from "./compose/bounded.ts";
import { deliveryKeyMaker } from "./compose/delivery-keys.ts";
import { destinationRules, hostCheck } from "./compose/destinations.ts";
import { createCounter, createObjectCounter, type Counter } from "./compose/counts.ts";
import { awaitReports, createDoorbells, reportsUntil } from "./compose/doorbells.ts";
import { composeOutbox, createOutboxBell } from "./compose/outbox.ts";
import { publishConfigsOf } from "./compose/publish-configs.ts";
import { quarantineDeps } from "./compose/quarantine.ts";
import { queueAgeMs } from "./compose/queue-age.ts";
import { createReports } from "./compose/reports.ts";
import { isolate, runtime } from "./compose/runtime.ts";
import { CENTRAL_SHARD, database, shardsOf } from "./compose/shards.ts";
import { parseSettings } from "./env.ts";
import { logFault } from "./log-fault.ts";
import type { ReportDeps } from "./queue/consumer.ts";
import { sendMessage, sendRings } from "./queue/producer.ts";
import { createApiKeyStore } from "./storage/config/api-keys.ts";
import { createDeliveryKeyStore } from "./storage/config/delivery-keys.ts";
import { createEndpointStore } from "./storage/config/endpoints.ts";
import { createEventTypeStore } from "./storage/config/event-types.ts";
import { createSigningSecretStore } from "./storage/config/signing-secrets.ts";
import { createSourceDirectory } from "./storage/config/source-directory.ts";
import { createSourceStore } from "./storage/config/sources.ts";
import { createSubscriptionStore } from "./storage/config/subscriptions.ts";
import { createTenantDirectory, createTenantStore } from "./storage/config/tenants.ts";
import { createActLedger } from "./storage/ledger/act.ts";
import { createAuthLedger } from "./storage/ledger/authenticate.ts";
import { createCloseLedger } from "./storage/ledger/close.ts";
import { createDeliverLedger } from "./storage/ledger/deliver.ts";
import { createEraseLedger } from "./storage/ledger/erase.ts";
import { createExportLedger } from "./storage/ledger/export.ts";
import { createHealthLedger } from "./storage/ledger/health.ts";
import { createFindLedger } from "./storage/ledger/find.ts";
import { createFanOutLedger } from "./storage/ledger/fan-out.ts";
import { createLaneLedger } from "./storage/ledger/lane.ts";
import { createLaneViewLedger } from "./storage/ledger/lane-view.ts";
import { createListDeliveriesLedger } from "./storage/ledger/list-deliveries.ts";
import { createListEventsLedger } from "./storage/ledger/list-events.ts";
import { createPublishConfigLedger } from "./storage/ledger/publish-config.ts";
import { createPublishLedger } from "./storage/ledger/publish.ts";
import { createOutboxLedger } from "./storage/ledger/outbox.ts";
import { createReadLedger } from "./storage/ledger/read.ts";
import { createReleaseLedger } from "./storage/ledger/release.ts";
import { createBackfillLedger } from "./storage/ledger/replays/backfill.ts";
import { createReplayJobLedger } from "./storage/ledger/replays/jobs.ts";
import { createReplayStepLedger } from "./storage/ledger/replays/steps.ts";
import { createRetryPendingLedger } from "./storage/ledger/retry-pending.ts";
import { createRerouteLedger } from "./storage/ledger/reroute.ts";
import { createTestSendLedger } from "./storage/ledger/test-send.ts";
import { createRetentionLedger } from "./storage/ledger/retention.ts";
import { createWatchLedger } from "./storage/ledger/watch.ts";
import { createPayloadStore } from "./storage/payloads.ts";
import { publishLimiterName } from "./core/publish-limits.ts";

const REPORT_DELAY_SECONDS = 5;
const CLOSINGS_PER_BATCH = 50;
/** A lease outlasts its request by thirty seconds, in which the report has to be in the ledger or on its way there. */
const CLOSE_LIMIT_MS = 10_000;
/** Beyond a request's deadline, which its sender keeps. Longer than any lease: a success that comes this late still counts. */
const SENDER_SLACK_MS = 120_000;
/** While the queue refuses, a watchdog's tick waits this long for the attempts it makes itself. */
const DIRECT_WAIT_MS = 2_000;

export { armWatchdogs } from "./compose/doorbells.ts";
export { handOverFromObject, isCounting, keepOwn } from "./compose/counts.ts";
export { composeMetrics } from "./compose/metrics.ts";
export { shardsOf };

/** Any of the contexts that work can be left to. */
type Context = Pick<ExecutionContext, "waitUntil" | "exports">;

/** What an isolate remembers. Nothing of it decides anything: it saves trips and bounds memory. */
const inFlight = createInFlight();
const sourcePlaces = new Map<string, SourcePlace>();

export function composeCentral(env: Env, context: Context): CentralDeps {
  const shards = shardsOf(env);
  return {
    ...runtime,
    shards: [...shards.keys()],
    directory: createTenantDirectory(database(env, CENTRAL_SHARD)),
    tenantStore: (shard) => createTenantStore(database(env, shard)),
    tenantWork: (shard) => ({
      ...runtime,
      ...createDoorbells(env, context, shard),
      ...createReleaseLedger(database(env, shard)),
      releaseHeldPart: createActLedger(database(env, shard)).releaseHeldPart,
    }),
    sourceDirectory: createSourceDirectory(database(env, CENTRAL_SHARD)),
    sourcePlaces,
    publicKeys: (shard) => createDeliveryKeyStore(database(env, shard)),
    maxPayloadBytes: parseSettings(env).MAX_PAYLOAD_BYTES,
  };
}

export function composeShard(env: Env, context: Context, shard: string): ShardDeps {
  const settings = parseSettings(env);
  const db = database(env, shard);
  const act = createActLedger(db, createOutboxBell(env, context, shard));
  const payloads = bounded(createPayloadStore(env.PAYLOADS));
  const sources = createSourceStore(db);
  return {
    ...runtime,
    ...createDoorbells(env, context, shard),
    ...createAuthLedger(db),
    ...createPublishLedger(db),
    ...createReadLedger(db),
    ...createListEventsLedger(db),
    ...createFindLedger(db),
    ...createListDeliveriesLedger(db),
    ...createExportLedger(db),
    ...createRerouteLedger(db),
    ...createLaneViewLedger(db),
    ...createHealthLedger(db),
    ...createReports(db),
    ...createTestSendLedger(db),
    ...createEraseLedger(db),
    ...createReplayJobLedger(db),
    ...createBackfillLedger(db),
    ...createRetryPendingLedger(db),
    ...act,
    ...payloads,
    shard,
    maxPayloadBytes: settings.MAX_PAYLOAD_BYTES,
    retentionDays: settings.RETENTION_DAYS,
    secretsKeys: settings.SECRETS_KEY,
    destinationRules: destinationRules(env),
    publishLimits: settings.PUBLISH_LIMITS,
    endpointQuotas: {
      free: settings.ENDPOINT_QUOTA_FREE,
      pro: settings.ENDPOINT_QUOTA_PRO,
      enterprise: settings.ENDPOINT_QUOTA_ENTERPRISE,
    },
    publishConfigs: publishConfigsOf(shard),
    sources,
    findSourceName: sources.findName,
    sourceDirectory: createSourceDirectory(database(env, CENTRAL_SHARD)),
    endpoints: createEndpointStore(db),
    signingSecrets: createSigningSecretStore(db),
    subscriptions: createSubscriptionStore(db),
    eventTypes: createEventTypeStore(db),
    apiKeys: createApiKeyStore(db),
    background: (work) => context.waitUntil(work),
    logFault,
    notePublished: createCounter(env, context, shard).published,
    countPublish: async (plan, whose, id) => (await env[publishLimiterName(plan, whose)].limit({ key: id })).success,
    testSender: () => composeDeliver(env, context, shard, "test"),
    async endDeliveriesOfEndpoint(tenantId, endpointId) {
      while (await act.endDeliveriesOfEndpointPart(tenantId, endpointId, runtime.now()));
    },
  };
}

/** For whoever makes attempts, and for consumers of reports; `kind` says who works, for `worker_id`. */
export function composeDeliver(
  env: Env,
  context: Context,
  shard: string,
  kind: "queue" | "lane" | "test",
  counter: Counter = createCounter(env, context, shard),
): DeliverDeps & ReportDeps & ExpandFanOutDeps {
  const settings = parseSettings(env);
  const db = database(env, shard);
  const ledger = createDeliverLedger(db);
  const close = createCloseLedger(db, createOutboxBell(env, context, shard));
  const closeInTime = (...closing: Parameters<typeof close.closeAttempts>) =>
    within(CLOSE_LIMIT_MS, close.closeAttempts(...closing));
  const closeTogether = coalesce(closeInTime, CLOSINGS_PER_BATCH);
  return {
    ...runtime,
    ...createDoorbells(env, context, shard),
    ...ledger,
    ...createFanOutLedger(db),
    async endDeliveries(ends, now) {
      const areEnded = await ledger.endDeliveries(ends, now);
      counter.ended(ends.filter((_, i) => areEnded[i]));
    },
    listRecentAnswers: (...asked) => within(CLOSE_LIMIT_MS, close.listRecentAnswers(...asked)),
    closeAttempts: async (closings) => void (await Promise.all(closings.map(closeTogether))),
    getPayload: bounded(createPayloadStore(env.PAYLOADS)).getPayload,
    secretsKeys: settings.SECRETS_KEY,
    destinationRules: destinationRules(env),
    checkHost: hostCheck(env, context),
    makeDeliveryKey: deliveryKeyMaker(env, shard),
    reportsUntil: () => reportsUntil(env, shard),
    createToken: () => encodeRandomPart(runtime.randomBytes(10)),
    workerId: `${env.VERSION.id}.${isolate()}.${kind}`,
    relayRegion: settings.RELAY_REGION,
    inFlight,
    quarantine: (place: Place, seen) => enterQuarantine(quarantineDeps(env, context, shard), place, seen),
    // RPC's types forget tuples.
    send: (request) =>
      within(
        request.timeoutMs + SENDER_SLACK_MS,
        context.exports.Sender.send(request) as unknown as ReturnType<DeliverDeps["send"]>,
      ),
    async queueReport(report) {
      await sendMessage(env.OUTCOMES, { shard, report }, REPORT_DELAY_SECONDS);
      await awaitReports(env, shard, REPORT_DELAY_SECONDS);
    },
    awaitReports: (delaySeconds) => awaitReports(env, shard, delaySeconds),
    background: (work) => context.waitUntil(work),
    logAttempt(line) {
      console.log(JSON.stringify({ level: "info", event: "attempt", ...line }));
      counter.attempt(line);
    },
    logFault,
  };
}

/** For the object that is a lane. */
export function composeLane(env: Env, context: Context, shard: string, pumpAgain: () => Promise<void>): LaneDeps {
  const lane = createLaneLedger(database(env, shard), createOutboxBell(env, context, shard));
  const counter = createObjectCounter(env, shard);
  const common = composeDeliver(env, context, shard, "lane", counter);
  return {
    ...common,
    ...lane,
    async endHead(head, end, now) {
      if (await lane.endHead(head, end, now)) counter.ended([end]);
    },
    closeAndClaim: (...closing) => within(CLOSE_LIMIT_MS, lane.closeAndClaim(...closing)),
    within,
    leaveQuarantine: (place: Place, quarantinedAt) =>
      leaveQuarantine(quarantineDeps(env, context, shard), place, quarantinedAt),
    // It pumps itself; it wakes another object only when it was moved.
    ringLater: () => {},
    ringQueue: common.ringLater,
    pumpAgain,
  };
}

export function composeWatch(env: Env, context: Context, shard: string): Omit<WatchDeps, "reportsUntil"> {
  const db = database(env, shard);
  const direct = composeDeliver(env, context, shard, "queue", createObjectCounter(env, shard));
  const outbox = composeOutbox(env, context, shard);
  return {
    ...direct,
    ...createWatchLedger(db),
    ...createRetentionLedger(db),
    ...createOutboxLedger(db),
    ...createReplayStepLedger(db),
    ...createBackfillLedger(db),
    findTenantRevision: createPublishConfigLedger(db).findTenantRevision,
    subscriptions: createSubscriptionStore(db),
    eventTypes: createEventTypeStore(db),
    findSourceName: createSourceStore(db).findName,
    publishRaised: (tenantId) => publishOperational(outbox, tenantId),
    releaseHeldPart: createActLedger(db).releaseHeldPart,
    retentionDays: parseSettings(env).RETENTION_DAYS,
    deletePayloads: bounded(createPayloadStore(env.PAYLOADS)).deletePayloads,
    async ringNow(calls) {
      try {
        await sendRings(env.RETRIES, shard, calls, 0);
      } catch (error) {
        logFault("ring, so attempting directly", error);
        const work: Promise<unknown>[] = [];
        await deliver({ ...direct, background: (part) => work.push(part) }, calls);
        context.waitUntil(Promise.all(work));
        await Promise.race([Promise.all(work), runtime.sleep(DIRECT_WAIT_MS)]);
      }
    },
    queueAgeMs: () => queueAgeMs(env),
  };
}
