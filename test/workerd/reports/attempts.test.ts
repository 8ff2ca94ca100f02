import { expect, test } from "vitest";
import { createAttemptsReport } from "../../../src/storage/ledger/reports/attempts.ts";
import { createTestTenant } from "../support/api.ts";
import { explain } from "../support/plans.ts";
import { createScene, type Scene } from "../support/scene.ts";
import { seed, type SeedAttempt } from "./ledger.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

const attemptsBy = async ({ tenant }: Pick<Scene, "tenant">, query = "") => {
  const answer = await tenant.api.get(`/v1/reports/attempts${query}`);
  expect(answer.status).toBe(200);
  return answer.body;
};

const time = (ms: number) => new Date(ms).toISOString();
const failed = (requestedAt: number, outcomeClass: string, fields: Partial<SeedAttempt> = {}): SeedAttempt => ({
  requestedAt,
  statusCode: null,
  outcomeClass,
  errorClass: "timeout",
  ...fields,
});

test("attempts are counted by worker and by region, by what they came to", async () => {
  const scene = await createScene();
  const at = Date.now() - 20 * MINUTE_MS;
  const good = { workerId: "v1.aaaaaaaa.queue", relayRegion: "AMS" };
  const bad = { workerId: "v1.bbbbbbbb.lane", relayRegion: "AMS" };
  await seed(scene, [
    { at, deliveries: [{ attempts: [{ requestedAt: at + 1, latencyMs: 10, ...good }] }] },
    { at, deliveries: [{ attempts: [{ requestedAt: at + 2, latencyMs: 20, ...good }] }] },
    {
      at,
      deliveries: [
        {
          status: "processing",
          attempts: [
            failed(at + 3, "unreachable", { ...bad, latencyMs: 15_000 }),
            failed(at + 4, "unreachable", { ...bad, latencyMs: null, errorClass: "abandoned" }),
            failed(at + 5, "transient", { ...bad, latencyMs: 30, statusCode: 503 }),
            failed(at + 6, "rejected", { latencyMs: 40, statusCode: 400 }),
            { requestedAt: at + 7, latencyMs: null, statusCode: null, outcomeClass: null, ...good },
          ],
        },
      ],
    },
  ]);
  const none = { succeeded: 0, open: 0, transient: 0, rejected: 0, unreachable: 0, relay_faults: 0 };
  const byWorker = await attemptsBy(scene);
  expect(byWorker).toMatchObject({ complete: true, groups: 3, complete_from: byWorker.window.from });
  expect(byWorker.data).toEqual([
    {
      ...none,
      worker_id: bad.workerId,
      relay_region: null,
      transient: 1,
      unreachable: 1,
      relay_faults: 1,
      last_at: time(at + 5),
      latency_ms: { count: 2, p50: 30, p95: 15_000, p99: 15_000 },
    },
    {
      ...none,
      worker_id: null,
      relay_region: null,
      rejected: 1,
      last_at: time(at + 6),
      latency_ms: { count: 1, p50: 40, p95: 40, p99: 40 },
    },
    {
      ...none,
      worker_id: good.workerId,
      relay_region: null,
      succeeded: 2,
      open: 1,
      last_at: time(at + 7),
      latency_ms: { count: 2, p50: 10, p95: 20, p99: 20 },
    },
  ]);
  const byRegion = await attemptsBy(scene, "?by=relay_region");
  expect(byRegion.data.map((row: any) => [row.relay_region, row.worker_id, row.succeeded, row.unreachable])).toEqual([
    ["AMS", null, 2, 1],
    [null, null, 0, 0],
  ]);
});

test("failures are found by their time whatever they are of, successes by their events", async () => {
  const scene = await createScene();
  const now = Date.now();
  const old = now - 2 * DAY_MS;
  await seed(scene, [
    {
      at: old,
      deliveries: [
        {
          attempts: [
            failed(old, "transient"),
            failed(now - 10 * MINUTE_MS, "transient"),
            { requestedAt: now - 5 * MINUTE_MS },
          ],
        },
      ],
    },
    { at: old, expiresAt: now - 1, deliveries: [{ attempts: [failed(now - MINUTE_MS, "transient")] }] },
  ]);
  expect((await attemptsBy(scene)).data).toMatchObject([{ transient: 1, succeeded: 0 }]);
  expect((await attemptsBy(scene, "?window=3d")).data).toMatchObject([{ transient: 2, succeeded: 1 }]);
});

test("more than is looked at is not called complete, and nothing older than that is counted", async () => {
  const scene = await createScene();
  const now = Date.now();
  const at = now - MINUTE_MS;
  await seed(
    scene,
    Array.from({ length: 20 }, (_, i) => ({
      at: at + i,
      deliveries: [{ attempts: i % 2 ? [failed(at + i, "transient")] : [{ requestedAt: at + i }] }],
    })),
  );
  const count = (limit: number) =>
    createAttemptsReport(scene.db, limit).countAttempts(scene.tenant.id, "worker_id", now - DAY_MS, now);
  expect(await count(21)).toMatchObject({ completeFrom: now - DAY_MS, data: [{ succeeded: 10, transient: 10 }] });
  // The walk of what was tried ends at event 8 of those counted from the end, long before that of what failed does.
  expect(await count(8)).toMatchObject({ completeFrom: at + 13, data: [{ succeeded: 3, transient: 4 }] });
  expect(await count(1)).toMatchObject({ completeFrom: at + 20, data: [], groups: 0 });
});

test("another tenant's are not in it, and of nothing there is nothing", async () => {
  const scene = await createScene();
  await seed(scene, [{ at: Date.now(), deliveries: [{ attempts: [failed(Date.now(), "transient")] }] }]);
  const other = await createTestTenant();
  expect(await attemptsBy({ tenant: other })).toMatchObject({ data: [], groups: 0, complete: true });
});

test("attempts are walked by key and by the index of what failed only", async () => {
  const scene = await createScene();
  const plan = await explain(scene.db, (db) =>
    createAttemptsReport(db).countAttempts(scene.tenant.id, "worker_id", 0, Date.now()),
  );
  expect(plan.filter((step) => /^(SCAN|SEARCH) (attempt|event|delivery|a|e)\b/.test(step)).toSorted()).toEqual([
    "SEARCH attempt USING INDEX attempt_failed (tenant_id=? AND requested_at>?)",
    "SEARCH attempt USING PRIMARY KEY (tenant_id=? AND event_id>?)",
    "SEARCH e USING PRIMARY KEY (tenant_id=? AND id=?)",
    "SEARCH e USING PRIMARY KEY (tenant_id=? AND id=?)",
    "SEARCH e USING PRIMARY KEY (tenant_id=? AND id=?)",
  ]);
});
