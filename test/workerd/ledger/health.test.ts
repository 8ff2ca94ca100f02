import { env } from "cloudflare:workers";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { recordAttempt } from "../../../src/app/deliver/record-attempt.ts";
import { composeShard } from "../../../src/compose.ts";
import { parseDeliveryId } from "../../../src/core/ids.ts";
import { answered, claim, report } from "../support/closing.ts";
import { countingEnv, createCost } from "../support/counting.ts";
import { createScene, empty, type Scene } from "../support/scene.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const FAR = 4_000_000_000_000;

let status = 200;
beforeEach(() => {
  status = 200;
  vi.spyOn(globalThis, "fetch").mockImplementation(async () => new Response("ok", { status }));
});
afterEach(() => vi.restoreAllMocks());

const health = async ({ tenant, endpointId }: Scene) => {
  const answer = await tenant.api.get(`/v1/endpoints/${endpointId}/health`);
  expect(answer.status).toBe(200);
  return answer.body;
};

/** A delivery with one attempt, at once. */
async function deliverOne(scene: Scene, statusCode: number) {
  const delivery = await scene.publishOne();
  const token = crypto.randomUUID();
  await claim(scene, delivery, 1, token);
  await recordAttempt(scene.deps, report(delivery, 1, token, answered(statusCode)));
  return delivery;
}

interface Fill {
  from: number;
  count: number;
  /** SQL of `n.i`. */
  createdAt: string;
  /** When its only attempt began; "null" for none. */
  requestedAt: string;
  /** What it came to: 200, 503, or "null" while it is under way. */
  statusCode?: string;
  lane?: boolean;
  subscriptionId?: string;
}

/** Deliveries of one endpoint in bulk: those with an attempt have ended, the others wait. */
async function fill(scene: Scene, { from, count, createdAt, requestedAt, statusCode = "200", ...over }: Fill) {
  const { db, tenant, endpointId } = scene;
  const numbers = `with recursive n(i) as (select ${from} union all select i + 1 from n where i + 1 < ${from + count})`;
  const id = "'evt_00' || printf('%024d', n.i)";
  const subscription = over.subscriptionId ?? (await subscriptions(scene))[0]!;
  const bind = (sql: string) => db.prepare(sql).bind(tenant.id, endpointId);
  await db.batch([
    bind(
      `insert into event (tenant_id, id, source_id, type, payload_ref, payload_sha256, payload_size, payload_is_json,
         content_type, occurred_at, relayed_at, expires_at)
       ${numbers} select ?1, ${id}, (select id from source where tenant_id = ?1 and deleted_at is null), 'old.event', 'r#0',
         x'00', 0, 1, 'application/json', 0, 0, ${FAR} from n where ?2 is not null`,
    ),
    bind(
      `insert into delivery (tenant_id, event_id, endpoint_id, subscription_id, lane_key, lane_position, status,
         retry_policy_id, created_at, next_attempt_at, terminal_at, attempt_count, last_attempt_at, expires_at)
       ${numbers} select ?1, ${id}, ?2, '${subscription}', ${over.lane ? "'', n.i" : "null, null"},
         iif(${requestedAt} is null, 'pending', 'succeeded'), (select retry_policy_id from endpoint where id = ?2),
         ${createdAt}, iif(${requestedAt} is null, ${FAR - 1}, null), iif(${requestedAt} is null, null, 1),
         ${requestedAt} is not null, ${requestedAt}, ${FAR} from n where ?1 is not null`,
    ),
    bind(
      `insert into attempt (tenant_id, event_id, endpoint_id, replay_no, attempt_number, requested_at, responded_at,
         latency_ms, status_code, outcome_class, error_class, endpoint_revision, signing_secret_ids)
       ${numbers} select ?1, ${id}, ?2, 0, 1, ${requestedAt}, ${requestedAt} + 5, 5, ${statusCode},
         iif(${statusCode} < 300, 'success', 'transient'), iif(${statusCode} < 300, null, 'http_5xx'), 1, '[]'
       from n where ${requestedAt} is not null`,
    ),
  ]);
  onTestFinished(() => empty(scene));
}

const subscriptions = async ({ db, tenant, endpointId }: Scene): Promise<string[]> => {
  const { results } = await db
    .prepare("select id from subscription where tenant_id = ? and endpoint_id = ? and deleted_at is null")
    .bind(tenant.id, endpointId)
    .all<{ id: string }>();
  return results.map(({ id }) => id);
};

test("an endpoint that was never asked is unknown, and one that is paused or disabled says so first", async () => {
  const scene = await createScene();
  const { tenant, endpointId } = scene;
  await scene.publishOne();
  expect(await health(scene)).toEqual({
    state: "unknown",
    why: "No request to it that has ended was found.",
    window: { attempts: 0, from: null, to: null },
    success_rate: null,
    p50_ms: null,
    p95_ms: null,
    consecutive_failures: 0,
    last_success_at: null,
    last_failure_at: null,
    last_error_class: null,
    last_status_code: null,
    failing_since: null,
    disables_at: null,
  });
  await tenant.api.post(`/v1/endpoints/${endpointId}/pause`);
  expect(await health(scene)).toMatchObject({ state: "paused", why: expect.stringContaining("Paused since") });
  await tenant.api.post(`/v1/endpoints/${endpointId}/disable`);
  expect(await health(scene)).toMatchObject({ state: "disabled", why: expect.stringContaining("by an operator") });
  await tenant.api.delete(`/v1/endpoints/${endpointId}`);
  expect((await tenant.api.get(`/v1/endpoints/${endpointId}/health`)).status).toBe(404);
});

test("it is computed from what is on record at that moment", async () => {
  const scene = await createScene();
  for (const statusCode of [200, 422, 422]) await deliverOne(scene, statusCode);
  const failing = await health(scene);
  expect(failing).toMatchObject({
    state: "degraded",
    window: { attempts: 3 },
    success_rate: 1 / 3,
    p50_ms: 5,
    p95_ms: 5,
    consecutive_failures: 2,
    last_error_class: "http_4xx",
    last_status_code: 422,
  });
  expect(failing.last_failure_at).toBe(failing.window.to);
  expect(Date.parse(failing.disables_at) - Date.parse(failing.failing_since)).toBe(5 * DAY_MS);
  await deliverOne(scene, 200);
  expect(await health(scene)).toMatchObject({ consecutive_failures: 0, failing_since: null, disables_at: null });
});

test("open attempts, faults of ours and test sends do not count; replays do, a test's too", async () => {
  const scene = await createScene();
  const { tenant, endpointId, deps } = scene;
  for (const kind of ["internal", "abandoned"] as const) {
    const delivery = await scene.publishOne();
    await claim(scene, delivery, 1, delivery.id);
    await recordAttempt(deps, report(delivery, 1, delivery.id, { kind }));
  }
  const open = await scene.publishOne();
  await claim(scene, open, 1, open.id);
  status = 500;
  const sent = await tenant.api.post(`/v1/endpoints/${endpointId}/test`);
  expect(await health(scene)).toMatchObject({ state: "unknown", window: { attempts: 0 } });

  const failed = await deliverOne(scene, 422);
  for (const original of [failed.id, sent.body.delivery_id]) {
    const { id } = (await tenant.api.post(`/v1/deliveries/${original}/replay`)).body;
    const ref = parseDeliveryId(id);
    if (!ref.ok) throw new Error(id);
    const replay = { ...failed, id, ref: { tenantId: tenant.id, ...ref.value } };
    await claim(scene, replay, 1, id, Date.now() + 1_000);
    await recordAttempt(deps, report(replay, 1, id, answered(200)));
  }
  expect(await health(scene)).toMatchObject({ window: { attempts: 3 }, success_rate: 2 / 3, consecutive_failures: 0 });
  await empty(scene);
});

test.each([
  ["a lane", true],
  ["queues", false],
])("a backlog of ten thousand in %s hides nothing of what was delivered before it", async (_name, lane) => {
  const scene = await createScene();
  const now = Date.now();
  // One a minute for six days; of the last two hours nothing has been attempted but the first, a minute ago.
  const minutes = 6 * 1_440;
  const createdAt = `${now} - (${minutes} - n.i) * ${MINUTE_MS}`;
  const attempted = minutes - 120;
  await fill(scene, {
    from: 0,
    count: attempted,
    createdAt,
    requestedAt: `${now - MINUTE_MS} - (${attempted} - n.i) * 1000`,
    statusCode: `iif(n.i % 2, 200, 503)`,
    lane,
  });
  await fill(scene, {
    from: attempted,
    count: 10_000,
    createdAt: `${now} - 120 * ${MINUTE_MS} + n.i`,
    requestedAt: "null",
    lane,
  });
  const found = await health(scene);
  expect(found).toMatchObject({ success_rate: expect.closeTo(0.5, 1), state: "degraded" });
  expect(found.window.attempts).toBe(100);
  expect(found.window.to).toBe(new Date(now - MINUTE_MS - 1_000).toISOString());
  expect(found.last_failure_at).toBe(new Date(now - MINUTE_MS - 2_000).toISOString());
});

test("retries of what is old are found among what is new, and the head of a lane with them", async () => {
  const scene = await createScene();
  const now = Date.now();
  const [days3, head] = [0, 1];
  await fill(scene, { from: 10, count: 500, createdAt: `${now} - n.i * 1000`, requestedAt: `${now} - n.i * 1000` });
  await fill(scene, {
    from: days3,
    count: 1,
    createdAt: `${now - 3 * DAY_MS - MINUTE_MS}`,
    requestedAt: `${now - 5_000}`,
    statusCode: "503",
  });
  await fill(scene, {
    from: head,
    count: 1,
    // Of no age that is looked at.
    createdAt: `${now - 20 * DAY_MS}`,
    requestedAt: `${now - 1_000}`,
    statusCode: "503",
  });
  await fill(scene, { from: 1_000, count: 20, createdAt: `${now - 20 * DAY_MS} + n.i`, requestedAt: "null" });
  await scene.db
    .prepare(
      `update delivery set status = 'pending', terminal_at = null, next_attempt_at = ${FAR}, lane_key = 'k', lane_position = 1
       where tenant_id = ? and event_id = 'evt_00' || printf('%024d', ${head})`,
    )
    .bind(scene.tenant.id)
    .run();
  expect(await health(scene)).toMatchObject({
    window: { to: new Date(now - 1_000).toISOString() },
    consecutive_failures: 2,
    last_success_at: new Date(now - 10_000).toISOString(),
  });
});

test("all subscriptions are looked at, a deleted one too, and what has expired is not", async () => {
  const scene = await createScene();
  const { tenant, endpointId, db } = scene;
  const now = Date.now();
  await fill(scene, { from: 0, count: 3, createdAt: `${now} - 60000`, requestedAt: `${now} - 60000` });
  const { body: second } = await tenant.api.post("/v1/subscriptions", {
    endpoint_id: endpointId,
    event_type_pattern: "other.*",
  });
  const other = { createdAt: `${now} - 1000`, requestedAt: `${now} - 1000`, statusCode: "503" };
  await fill(scene, { from: 10, count: 2, ...other, subscriptionId: second.id });
  expect(await health(scene)).toMatchObject({ window: { attempts: 5 }, consecutive_failures: 2 });
  await tenant.api.delete(`/v1/subscriptions/${second.id}`);
  expect(await health(scene)).toMatchObject({ window: { attempts: 5 }, consecutive_failures: 2 });
  await db
    .prepare("update delivery set expires_at = 1 where tenant_id = ? and subscription_id = ?")
    .bind(tenant.id, second.id)
    .run();
  expect(await health(scene)).toMatchObject({ window: { attempts: 3 }, consecutive_failures: 0 });
});

test("it reads no more rows of a large ledger than of a small one, and one trip's worth", async () => {
  const scene = await createScene();
  const { tenant, context, endpointId } = scene;
  const now = Date.now();
  const cost = createCost();
  const { readHealth } = composeShard(countingEnv(env as Env, cost), context.context, tenant.shard);
  const readsOf = async () => {
    const { rowsRead, ledgerTrips } = cost;
    const found = await readHealth(tenant.id, endpointId, now);
    expect(cost.ledgerTrips).toBe(ledgerTrips + 1);
    return { attempts: found!.attempts.length, reads: cost.rowsRead - rowsRead };
  };
  // Six days of it: the older half delivered, the newer waiting.
  const spread = async (from: number, count: number) => {
    const ago = `(n.i - ${from}) * ${(3 * DAY_MS) / count}`;
    const delivered = `${now - 3 * DAY_MS} - ${ago}`;
    await fill(scene, { from, count, createdAt: delivered, requestedAt: delivered });
    await fill(scene, {
      from: from + count,
      count,
      createdAt: `${now} - (n.i - ${from + count}) * ${(3 * DAY_MS) / count}`,
      requestedAt: "null",
      lane: true,
    });
  };
  await spread(0, 200);
  const few = await readsOf();
  await spread(1_000, 6_000);
  const many = await readsOf();
  console.log(`health: ${few.reads} rows read with 400 deliveries, ${many.reads} with 12,400`);
  expect(few.attempts).toBe(100);
  expect(many.reads).toBeLessThanOrEqual(few.reads + 50);
  expect(many.reads).toBeLessThan(2_000);
});
