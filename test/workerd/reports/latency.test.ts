import { expect, test } from "vitest";
import { createLatencyReport, MAX_LATENCIES } from "../../../src/storage/ledger/reports/latency.ts";
import { createApi, createTestTenant } from "../support/api.ts";
import { createScene, type Scene } from "../support/scene.ts";
import { explain } from "../support/plans.ts";
import { createRandom } from "../../support/random.ts";
import { seed, type SeedAttempt, type SeedDelivery, type SeedEvent } from "./ledger.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const NONE = { count: 0, p50: null, p95: null, p99: null };

const latency = async ({ tenant }: Pick<Scene, "tenant">, query = "") => {
  const answer = await tenant.api.get(`/v1/reports/latency${query}`);
  expect(answer.status).toBe(200);
  return answer.body;
};

const failed = (requestedAt: number): SeedAttempt => ({
  requestedAt,
  statusCode: 503,
  outcomeClass: "transient",
  errorClass: "http_5xx",
});

/** Nearest rank, said otherwise than in SQL. */
function percentilesOf(values: number[]) {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (percent: number) => sorted[Math.ceil((sorted.length * percent) / 100) - 1] ?? null;
  return { count: values.length, p50: at(50), p95: at(95), p99: at(99) };
}

test("each stretch of the way is measured by itself, exactly, and what has not arrived is counted beside it", async () => {
  const scene = await createScene();
  const base = Date.now() - 10 * MINUTE_MS;
  // A hundred that take 1 to 100 ms at each stretch, shuffled; one in ten needs a second attempt, 1 s later.
  const shuffled = Array.from({ length: 100 }, (_, i) => ((i * 37) % 100) + 1);
  const delivered: SeedEvent[] = shuffled.map((n, i) => {
    const at = base + i;
    const requestedAt = at + 2 * n + 3 * n;
    return {
      at,
      occurredAt: at - 1_000 * n,
      deliveries: [
        {
          scheduledAt: at + 2 * n,
          attempts:
            n % 10 === 0
              ? [failed(requestedAt), { requestedAt: requestedAt + 1_000, latencyMs: 7 }]
              : [{ requestedAt, latencyMs: 7 }],
        },
      ],
    };
  });
  const others: SeedEvent[] = [
    { at: base, occurredAt: base - 500, deliveries: [{ status: "pending", attempts: [failed(base + 40)] }] },
    { at: base, occurredAt: base - 500, deliveries: [{ status: "pending", scheduledAt: null }] },
    { at: base, occurredAt: base - 500, deliveries: [{ status: "dead_letter", attempts: [failed(base + 40)] }] },
    // Nobody's, and one whose producer's clock is ahead.
    { at: base, occurredAt: base - 500 },
    { at: base, occurredAt: base + 90 },
    // Of these the first has arrived where it was on record.
    { at: base, isFanningOut: true, deliveries: [{ attempts: [{ requestedAt: base }] }] },
    { at: base, isFanningOut: true },
  ];
  await seed(scene, [...delivered, ...others]);
  const sources = await scene.tenant.api.get("/v1/sources");
  const { data, ...rest } = await latency(scene);
  expect(rest).toMatchObject({ complete: true, groups: 1, complete_from: rest.window.from });
  expect(Date.parse(rest.window.until) - Date.parse(rest.window.from)).toBe(60 * MINUTE_MS);
  const toDelivered = shuffled.map((n) => 1_000 * n + 5 * n + 7 + (n % 10 === 0 ? 1_000 : 0));
  const expected = {
    events: 107,
    undelivered_events: 5,
    deliveries: 104,
    delivered: 101,
    open: 2,
    occurred_to_delivered_ms: percentilesOf([...toDelivered, 5]),
    occurred_to_relayed_ms: percentilesOf([...shuffled.map((n) => 1_000 * n), 500, 500, 500, 500, -90, 0, 0]),
    relayed_to_first_request_ms: percentilesOf([...shuffled.map((n) => 5 * n), 40, 40, 0]),
    limits_wait_ms: percentilesOf([...shuffled.map((n) => 2 * n), 0, 0, 0]),
    relay_lag_ms: percentilesOf([...shuffled.map((n) => 3 * n), 40, 40, 0]),
  };
  expect(expected.occurred_to_delivered_ms).toEqual({ count: 101, p50: 51_257, p95: 95_482, p99: 99_502 });
  expect(data).toEqual([{ source_id: sources.body.data[0].id, source_name: "orders", endpoint_id: null, ...expected }]);
});

test("of whatever values in whatever groups, percentiles are those of a sorted list", async () => {
  const scene = await createScene();
  const at = Date.now() - MINUTE_MS;
  const random = createRandom(20_261_201);
  const spreads = [1, 3, 1_000, 100_000];
  const endpoints: string[] = [];
  for (const _ of spreads) {
    endpoints.push((await scene.tenant.api.post("/v1/endpoints", { url: "https://other.example/hook" })).body.id);
  }
  const values: number[][] = spreads.map((spread, i) =>
    Array.from({ length: [1, 19, 150, 201][i]! }, () => Math.floor(random() * spread)),
  );
  await seed(
    scene,
    values.flatMap((of, i) =>
      of.map((ms) => ({ at, deliveries: [{ endpointId: endpoints[i], attempts: [{ requestedAt: at + ms }] }] })),
    ),
  );
  const { data } = await latency(scene, "?by=endpoint");
  const found = Object.fromEntries(data.map((row: any) => [row.endpoint_id, row.relay_lag_ms]));
  expect(found).toEqual(Object.fromEntries(values.map((of, i) => [endpoints[i], percentilesOf(of)])));
});

test("of one value all percentiles are it, of two the lower is the half", async () => {
  const scene = await createScene();
  const at = Date.now() - MINUTE_MS;
  const event = (ms: number): SeedEvent => ({ at, occurredAt: at - ms });
  await seed(scene, [event(10)]);
  expect((await latency(scene)).data[0].occurred_to_relayed_ms).toEqual({ count: 1, p50: 10, p95: 10, p99: 10 });
  await seed(scene, [{ ...event(30), at: at + 1 }]);
  expect((await latency(scene)).data[0].occurred_to_relayed_ms).toEqual({ count: 2, p50: 10, p95: 31, p99: 31 });
});

test("sources and endpoints are told apart", async () => {
  const scene = await createScene();
  const { api } = scene.tenant;
  const source = (await api.post("/v1/sources", { name: "stock" })).body.id;
  const endpoint = (await api.post("/v1/endpoints", { url: "https://other.example/hook" })).body.id;
  const at = Date.now() - MINUTE_MS;
  const to = (endpointId: string | undefined, ms: number): SeedDelivery => ({
    ...(endpointId !== undefined && { endpointId }),
    attempts: [{ requestedAt: at + ms }],
  });
  await seed(scene, [
    { at, deliveries: [to(undefined, 10), to(endpoint, 20)] },
    { at, deliveries: [to(undefined, 30)] },
    { at, sourceId: source, deliveries: [to(endpoint, 40)] },
  ]);
  const lagOf = (rows: any[], key: string) =>
    Object.fromEntries(rows.map((row) => [row[key], [row.deliveries, row.relay_lag_ms.p50, row.relay_lag_ms.p99]]));
  const bySource = await latency(scene);
  expect(bySource.groups).toBe(2);
  expect(lagOf(bySource.data, "source_name")).toEqual({ orders: [3, 20, 30], stock: [1, 40, 40] });
  const byEndpoint = await latency(scene, "?by=endpoint");
  expect(lagOf(byEndpoint.data, "endpoint_id")).toEqual({ [scene.endpointId]: [2, 10, 30], [endpoint]: [2, 20, 40] });
  expect(byEndpoint.data.map((row: any) => row.source_id)).toEqual([null, null]);
});

test("replays, test sends, what has expired, what was before the window and other tenants' are not in it", async () => {
  const scene = await createScene();
  const at = Date.now() - 30 * MINUTE_MS;
  const slow = [{ requestedAt: at + 10 * MINUTE_MS }];
  const testSubscription = scene.endpointId.replace("ep_", "sub_");
  await scene.tenant.api.post(`/v1/endpoints/${scene.endpointId}/test`);
  await seed(scene, [
    { at, deliveries: [{ attempts: [{ requestedAt: at + 5 }] }, { replayNo: 1, attempts: slow }] },
    { at, type: "hooklane.test", deliveries: [{ subscriptionId: testSubscription, attempts: slow }] },
    { at, expiresAt: Date.now() - 1, deliveries: [{ attempts: slow }] },
    { at: at - 40 * MINUTE_MS, deliveries: [{ attempts: slow }] },
  ]);
  const { data } = await latency(scene);
  expect(data).toMatchObject([
    { source_name: "orders", events: 1, deliveries: 1, relay_lag_ms: { count: 1, p50: 5, p95: 5, p99: 5 } },
  ]);
  expect((await latency(scene, "?window=2h")).data).toMatchObject([{ events: 2, deliveries: 2 }]);
  const other = await createTestTenant();
  expect(await latency({ tenant: other })).toMatchObject({ data: [], groups: 0, complete: true });
});

test("where nothing has arrived percentiles are null, and the counts say why", async () => {
  const scene = await createScene();
  expect((await latency(scene)).data).toEqual([]);
  await seed(scene, [{ at: Date.now() - MINUTE_MS, deliveries: [{ status: "pending", scheduledAt: null }] }]);
  expect((await latency(scene)).data).toMatchObject([
    {
      events: 1,
      undelivered_events: 1,
      deliveries: 1,
      delivered: 0,
      open: 1,
      occurred_to_delivered_ms: NONE,
      relayed_to_first_request_ms: NONE,
      limits_wait_ms: NONE,
      relay_lag_ms: NONE,
    },
  ]);
});

test("more than is looked at is not called complete: the figures are exactly of what was relayed since then", async () => {
  const scene = await createScene();
  const now = Date.now();
  const at = now - MINUTE_MS;
  // Two each millisecond, the older the slower.
  await seed(
    scene,
    Array.from({ length: 20 }, (_, i) => ({
      at: at + Math.floor(i / 2),
      deliveries: [{ attempts: [{ requestedAt: at + Math.floor(i / 2) + 1_000 - i }] }],
    })),
  );
  const measure = async (limit: number) =>
    createLatencyReport(scene.db, limit).measureLatencies(scene.tenant.id, "source", now - DAY_MS, now);
  const all = await measure(21);
  expect(all).toMatchObject({ completeFrom: now - DAY_MS, data: [{ deliveries: 20, relayLag: { p50: 990 } }] });
  // Five rows reach into the third millisecond from the end, of which the other is not seen.
  const some = await measure(5);
  expect(some.completeFrom).toBe(at + 8);
  expect(some.data).toMatchObject([{ events: 4, deliveries: 4, relayLag: { count: 4, p50: 982, p99: 984 } }]);
  // Nothing but an event that is larger than what is looked at: nothing can be said.
  const one = await measure(1);
  expect(one).toMatchObject({ completeFrom: at + 10, data: [], groups: 0 });
});

test("no table is walked but by its key, from the window's beginning on", async () => {
  const scene = await createScene();
  const plan = await explain(scene.db, (db) =>
    createLatencyReport(db, MAX_LATENCIES).measureLatencies(scene.tenant.id, "source", 0, Date.now()),
  );
  expect(plan.filter((step) => /^(SCAN|SEARCH) (event|delivery|attempt|a|e|d|s)\b/.test(step)).toSorted()).toEqual([
    "SCAN d",
    "SEARCH a USING PRIMARY KEY (tenant_id=? AND event_id=? AND endpoint_id=? AND replay_no=? AND attempt_number=?)",
    "SEARCH a USING PRIMARY KEY (tenant_id=? AND event_id=? AND endpoint_id=? AND replay_no=?)",
    "SEARCH delivery USING PRIMARY KEY (tenant_id=? AND event_id>?)",
    "SEARCH e USING PRIMARY KEY (tenant_id=? AND id=?)",
    "SEARCH event USING PRIMARY KEY (tenant_id=? AND id>?)",
    "SEARCH s USING PRIMARY KEY (tenant_id=? AND id=?)",
  ]);
  expect(plan).toContain("MATERIALIZE deliveries_walked");
});

test("only who may read is answered, and nothing but the window and what to tell apart is asked", async () => {
  const { tenant } = await createScene();
  const sources = await tenant.api.get("/v1/sources");
  const statusFor = async (key: string) => (await createApi(key).get("/v1/reports/latency")).status;
  expect(await statusFor(await tenant.readKey())).toBe(200);
  expect(await statusFor(await tenant.publishKey(sources.body.data[0].id))).toBe(403);
  for (const [query, path] of [
    ["?window=1", "window"],
    ["?window=0h", "window"],
    ["?window=9999d", "window"],
    ["?by=subscription", "by"],
    ["?limit=1", "limit"],
  ]) {
    const { status, body } = await tenant.api.get(`/v1/reports/latency${query}`);
    expect([status, body.errors[0].path]).toEqual([422, path]);
  }
});
