import { env } from "cloudflare:workers";
import { expect, onTestFinished, test } from "vitest";
import { deliveryId, firstEventIdAt, parseDeliveryId } from "../../../src/core/ids.ts";
import { DEFAULT_RETRY_POLICY } from "../../../src/core/retry-policy.ts";
import { composeLane, shardsOf } from "../../../src/compose.ts";
import { createActLedger } from "../../../src/storage/ledger/act.ts";
import { createCloseLedger } from "../../../src/storage/ledger/close.ts";
import { createDeliverLedger } from "../../../src/storage/ledger/deliver.ts";
import { createEraseLedger } from "../../../src/storage/ledger/erase.ts";
import { createListDeliveriesLedger } from "../../../src/storage/ledger/list-deliveries.ts";
import { createReadLedger } from "../../../src/storage/ledger/read.ts";
import { createRetentionLedger } from "../../../src/storage/ledger/retention.ts";
import { createWatchLedger } from "../../../src/storage/ledger/watch.ts";
import { cancelAll, createLaneFixture, reroute, withoutLanes, type LaneFixture } from "../lane/support.ts";
import { createTestTenant, type TestTenant } from "../support/api.ts";
import { countingEnv, createCost } from "../support/counting.ts";
import { createTestContext, publish, shardDeps } from "../support/worker.ts";

const FAR = 4_000_000_000_000;
/** Of `{}`. */
const PAYLOAD_SHA256 = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";

/**
 * History and backlog of one tenant, in bulk: half of the deliveries have ended, half wait for a retry far ahead; each has
 * an attempt.
 */
async function fill(db: D1Database, tenant: TestTenant, endpointId: string, from: number, to: number): Promise<void> {
  const numbers = `with recursive n(i) as (select ${from} union all select i + 1 from n where i + 1 < ${to})`;
  const id = "'evt_00' || printf('%024d', n.i)";
  const bind = (sql: string) => db.prepare(sql).bind(tenant.id, endpointId);
  await db.batch([
    bind(
      `insert into event (tenant_id, id, source_id, type, idempotency_key, payload_ref, payload_sha256, payload_size,
         payload_is_json, content_type, occurred_at, relayed_at, expires_at)
       ${numbers} select ?1, ${id}, (select id from source where tenant_id = ?1), 'old.event', 'key-' || n.i, 'r#0',
         x'00', 0, 1, 'application/json', 0, 0, ${FAR} from n where ?2 is not null`,
    ),
    bind(
      `insert into delivery (tenant_id, event_id, endpoint_id, subscription_id, status, retry_policy_id, created_at,
         scheduled_at, next_attempt_at, terminal_at, attempt_count, expires_at)
       ${numbers} select ?1, ${id}, ?2, (select id from subscription where tenant_id = ?1),
         iif(n.i % 2, 'pending', 'succeeded'), (select retry_policy_id from endpoint where tenant_id = ?1), 0, 0,
         iif(n.i % 2, ${FAR - 1}, null), iif(n.i % 2, null, 1), 1, ${FAR} from n`,
    ),
    bind(
      `insert into attempt (tenant_id, event_id, endpoint_id, replay_no, attempt_number, requested_at,
         endpoint_revision, signing_secret_ids)
       ${numbers} select ?1, ${id}, ?2, 0, 1, 0, 1, '[]' from n`,
    ),
  ]);
}

/** Rows read by each statement of the hot path, and of the watchdog and the lists. */
async function readsOfEverything(tenant: TestTenant, endpointId: string): Promise<Record<string, number>> {
  const context = createTestContext();
  const reads: Record<string, number> = {};
  const counting = async <T>(name: string, work: (bindings: Env) => Promise<T>): Promise<T> => {
    const cost = createCost();
    const result = await work(countingEnv(env as Env, cost));
    reads[name] = cost.rowsRead;
    return result;
  };
  const db = (bindings: Env) => shardsOf(bindings).get(tenant.shard)!;

  const event = { type: "new.event", source: "orders", idempotency_key: crypto.randomUUID() };
  const accepted = await counting("publish", (bindings) =>
    publish(shardDeps(tenant, context, bindings), tenant, event),
  );
  await counting("duplicate", (bindings) => publish(shardDeps(tenant, context, bindings), tenant, event));
  const parsed = parseDeliveryId(deliveryId({ eventId: accepted.id, endpointId, replayNo: 0 }));
  if (!parsed.ok) throw new Error("no delivery");
  const ref = { tenantId: tenant.id, ...parsed.value };

  await counting("load", (bindings) => createDeliverLedger(db(bindings)).loadDeliveries([ref]));
  const claim = {
    ...ref,
    attemptNumber: 1,
    token: crypto.randomUUID(),
    endpointRevision: 1,
    signingSecretIds: [],
    workerId: "w",
    relayRegion: null,
    leaseMs: 1,
  };
  const claimed = await counting("claim", (bindings) =>
    createDeliverLedger(db(bindings)).claimDeliveries([claim], Date.now()),
  );
  expect(claimed.size).toBe(1);
  await counting("expired leases", (bindings) => createWatchLedger(db(bindings)).listExpiredLeases(FAR, 500));
  const closing = {
    ...ref,
    attemptNumber: 1,
    token: claim.token,
    attempt: {
      respondedAt: Date.now(),
      latencyMs: 1,
      statusCode: 500,
      outcomeClass: "transient",
      errorClass: "http_5xx",
      responseBodySha256: null,
      responseHeadersJson: null,
      partnerRequestId: null,
    },
    disable: null,
    clock: { mark: "failure" as const, url: "https://consumer.example/hook", requestedAt: Date.now(), mayTell: true },
  };
  await counting("recent answers", (bindings) => createCloseLedger(db(bindings)).listRecentAnswers(ref, 2, 6));
  // The failure that begins a time of failing reads most: it looks for a success that overtook it.
  await db(env as Env)
    .prepare("update endpoint set failing_since = null, failure_noted_at = null where id = ?")
    .bind(endpointId)
    .run();
  await counting("close, retry", (bindings) =>
    createCloseLedger(db(bindings)).closeAttempts([
      { ...closing, delivery: { status: "pending", nextAttemptAt: 1, failureCount: 1, relayFaultCount: 0 } },
    ]),
  );
  await counting("due", (bindings) => createWatchLedger(db(bindings)).listDue(Date.now(), null, 500));
  await counting("long retries", (bindings) =>
    createWatchLedger(db(bindings)).listLongRetriesDue(0, Date.now(), 60, 9),
  );
  await counting("next due", (bindings) => createWatchLedger(db(bindings)).findNextDue(Date.now()));
  await counting("ended holds", (bindings) => createWatchLedger(db(bindings)).listEndedHolds(Date.now(), 500));
  await counting("stranded holds", (bindings) => createWatchLedger(db(bindings)).listStrandedHolds(null, 500));
  await counting("release held", (bindings) =>
    createActLedger(db(bindings)).releaseHeldPart(tenant.id, endpointId, Date.now()),
  );
  await counting("old events", (bindings) =>
    createRetentionLedger(db(bindings)).walkOldEvents([tenant.id, "evt_0"], "evt_1", 5),
  );
  // Of events that are not there: a plan that walks a table would show all the same.
  const absent = { tenantId: tenant.id, id: firstEventIdAt(1), payloadRef: "1d/o#0", expiresAt: 1 };
  await counting("delete events", (bindings) => createRetentionLedger(db(bindings)).deleteEvents([absent], 5_000));
  await counting("erase payload", (bindings) =>
    createEraseLedger(db(bindings)).markErasedPart(tenant.id, absent.id, Date.now()),
  );
  await counting("make due", (bindings) => createActLedger(db(bindings)).makeDue(tenant.id, ref, Date.now()));
  await counting("find delivery", (bindings) => createReadLedger(db(bindings)).findDelivery(tenant.id, ref, 0));
  await counting("find delivery with attempts", (bindings) =>
    createReadLedger(db(bindings)).findDeliveryWithAttempts(tenant.id, ref, 0),
  );
  await counting("find event", (bindings) => createReadLedger(db(bindings)).findEvent(tenant.id, ref.eventId, 0));
  await counting("deliveries of an event", (bindings) =>
    createListDeliveriesLedger(db(bindings)).listDeliveries(tenant.id, { eventId: ref.eventId }, null, 5, 0),
  );
  await counting("cancel", (bindings) => createActLedger(db(bindings)).cancelDelivery(tenant.id, ref, Date.now()));
  await counting("replay", (bindings) =>
    createActLedger(db(bindings)).insertReplay(tenant.id, ref, DEFAULT_RETRY_POLICY, Date.now()),
  );
  const replay = { ...ref, replayNo: 1 };
  await counting("end", (bindings) =>
    createDeliverLedger(db(bindings)).endDeliveries(
      [{ ...replay, status: "failed", finalOutcome: "payload_missing" }],
      Date.now(),
    ),
  );
  return reads;
}

/** The watchdog looks at all tenants of a shard, so what other tests have left open would be counted with it. */
async function endWorkOfOtherTests(db: D1Database, { id }: TestTenant): Promise<void> {
  await db
    .prepare(
      `update delivery set status = 'cancelled', terminal_at = 1, token = null, next_attempt_at = null, hold_until = null
       where terminal_at is null and tenant_id <> ?`,
    )
    .bind(id)
    .run();
}

test("no statement of the hot path reads more rows with ten thousand in the ledger than with ten", async () => {
  const tenant = await createTestTenant();
  await tenant.api.post("/v1/sources", { name: "orders" });
  const endpoint = await tenant.api.post("/v1/endpoints", { url: "https://consumer.example/hook" });
  await tenant.api.post("/v1/subscriptions", { endpoint_id: endpoint.body.id, event_type_pattern: "*" });
  const db = shardsOf(env as Env).get(tenant.shard)!;
  // The first publish loads the configuration; the ones that are counted know it.
  await publish(shardDeps(tenant, createTestContext()), tenant, { type: "warm.up", source: "orders" });

  await endWorkOfOtherTests(db, tenant);
  await fill(db, tenant, endpoint.body.id, 0, 10);
  const atTen = await readsOfEverything(tenant, endpoint.body.id);
  await fill(db, tenant, endpoint.body.id, 10, 10_000);
  const atTenThousand = await readsOfEverything(tenant, endpoint.body.id);
  for (const [name, reads] of Object.entries(atTen)) {
    // A seek may touch one neighbour more or less, as its key happens to lie.
    expect(Math.abs(atTenThousand[name]! - reads), name).toBeLessThanOrEqual(2);
  }
  // The most is the walk over fifty tenants, of which most have nothing old.
  expect(Math.max(...Object.values(atTen))).toBeLessThan(150);
});

/** `count` more deliveries that wait in an endpoint's lane: one lane key for all, or one for each event. */
async function fillLane({ db, tenant, endpointId }: LaneFixture, isOrdered: boolean, from: number, count: number) {
  const numbers = `with recursive n(i) as (select ${from} union all select i + 1 from n where i + 1 < ${from + count})`;
  const id = "'evt_00' || printf('%024d', n.i)";
  const bind = (sql: string) => db.prepare(sql).bind(tenant.id, endpointId);
  await db.batch([
    bind(
      `insert into event (tenant_id, id, source_id, type, payload_ref, payload_sha256, payload_size, payload_is_json,
         content_type, occurred_at, relayed_at, expires_at)
       ${numbers} select ?1, ${id}, (select id from source where tenant_id = ?1), 'old.event', 'r#0', unhex('${PAYLOAD_SHA256}'), 2, 1,
         'application/json', 0, 0, ${FAR} from n where ?2 is not null`,
    ),
    bind(
      `insert into delivery (tenant_id, event_id, endpoint_id, subscription_id, lane_key, lane_position, status,
         retry_policy_id, created_at, next_attempt_at, expires_at)
       ${numbers} select ?1, ${id}, ?2, (select id from subscription where tenant_id = ?1),
         ${isOrdered ? "''" : id}, ${isOrdered ? "n.i + 1" : "1"}, 'pending',
         (select retry_policy_id from endpoint where tenant_id = ?1), 0, 0, ${FAR} from n`,
    ),
  ]);
}

/** The watchdog of this runtime is a real one: it would wake a real lane, which would be at this work for minutes. */
async function emptyLane({ db, tenant, endpointId }: LaneFixture): Promise<void> {
  const remove = (table: string) =>
    db.prepare(`delete from ${table} where tenant_id = ? and endpoint_id = ?`).bind(tenant.id, endpointId);
  await db.batch([
    remove("attempt"),
    remove("delivery"),
    db.prepare("delete from event where tenant_id = ? and type = 'old.event'").bind(tenant.id),
  ]);
}

/** Rows read while a lane makes `count` deliveries. */
async function readsOfDeliveries(fixture: LaneFixture, count: number): Promise<number> {
  const cost = createCost();
  const { tenant, context, db, endpointId } = fixture;
  const counted = composeLane(countingEnv(withoutLanes, cost), context.context, tenant.shard, async () => {});
  const { loadLane, claimHead, closeAndClaim, closeAttempts } = counted;
  const lane = fixture.createLane("counted", 0, (deps) => ({
    ...deps,
    loadLane,
    claimHead,
    closeAndClaim,
    closeAttempts,
    getPayload: async () => new TextEncoder().encode("{}"),
  }));
  let made = 0;
  let reads = 0;
  fixture.answer = async () => {
    if (++made === count) {
      reads = cost.rowsRead;
      // Behind the relay's back, so that the lane stops here.
      await db.prepare("update endpoint set paused_at = 1 where id = ?").bind(endpointId).run();
    }
    return new Response("ok");
  };
  await lane.run();
  await db.prepare("update endpoint set paused_at = null where id = ?").bind(endpointId).run();
  return reads;
}

test.each([
  ["strict", { ordering_mode: "strict" }],
  ["capped", { ordering_mode: "unordered", concurrency_cap: 4 }],
])(
  "a delivery of a %s lane reads no more rows with a hundred thousand waiting than with two hundred",
  async (_name, endpoint) => {
    const fixture = await createLaneFixture(endpoint);
    onTestFinished(() => emptyLane(fixture));
    await fillLane(fixture, endpoint.ordering_mode === "strict", 0, 200);
    const count = 64;
    const few = await readsOfDeliveries(fixture, count);
    await fillLane(fixture, endpoint.ordering_mode === "strict", 200, 100_000);
    const many = await readsOfDeliveries(fixture, count);
    console.log(`${_name} lane: ${few / count} rows read a delivery with 200 waiting, ${many / count} with 100,000`);
    expect(Math.abs(many - few)).toBeLessThanOrEqual(count * 2);
    expect(few / count).toBeLessThan(60);
  },
);

test("five thousand lanes with nothing open, and all that they delivered, cost a tick of the watchdog no read", async () => {
  const fixture = await createLaneFixture();
  await fixture.publishAll(["k/0"]);
  const { db, tenant, endpointId } = fixture;
  const cost = createCost();
  const watch = createWatchLedger(shardsOf(countingEnv(env as Env, cost)).get(tenant.shard)!);
  const readsOfTick = async () => {
    const before = cost.rowsRead;
    await watch.listOverdueLanes("", FAR, 500);
    await watch.findNextDue(Date.now());
    return cost.rowsRead - before;
  };
  const withOne = await readsOfTick();
  const numbers = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 5000)";
  const id = "'ep_idle' || printf('%012d', n.i)";
  await db.batch(
    [
      `insert into endpoint (tenant_id, id, url, ordering_mode, route, retry_policy_id, created_at)
       ${numbers} select e.tenant_id, ${id}, e.url, 'strict', 'lane', e.retry_policy_id, 0
       from n cross join endpoint e where e.id = ?2 and e.tenant_id = ?1`,
      `insert into delivery (tenant_id, event_id, endpoint_id, subscription_id, lane_key, lane_position, status,
         retry_policy_id, created_at, terminal_at, expires_at)
       ${numbers} select d.tenant_id, d.event_id, ${id}, d.subscription_id, '', 1, 'succeeded', d.retry_policy_id, 0, 1,
         d.expires_at from n cross join delivery d where d.endpoint_id = ?2 and d.tenant_id = ?1`,
    ].map((sql) => db.prepare(sql).bind(tenant.id, endpointId)),
  );
  expect(await readsOfTick()).toBe(withOne);
});

test("to enter quarantine and to leave it reads nothing of what has ended, however much that is", async () => {
  const fixture = await createLaneFixture({ ordering_mode: "unordered" });
  onTestFinished(() => emptyLane(fixture));
  await fixture.publishAll(["k/0", "k/1"]);
  const { db, tenant, endpointId } = fixture;
  const cost = createCost();
  const counted = { ...fixture, db: shardsOf(countingEnv(env as Env, cost)).get(tenant.shard)! };
  const readsOfMoves = async () => {
    const before = cost.rowsRead;
    for (const route of ["lane", "queue"] as const) await reroute(counted, "unordered", route);
    return cost.rowsRead - before;
  };
  const withNone = await readsOfMoves();
  await fillLane(fixture, false, 0, 3_000);
  await db
    .prepare("update delivery set status = 'succeeded', terminal_at = 1 where endpoint_id = ? and created_at = 0")
    .bind(endpointId)
    .run();
  expect((await readsOfMoves()) - withNone).toBeLessThan(1_000);
  await cancelAll(fixture);
});
