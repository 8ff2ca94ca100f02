import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { retryPending } from "../../../src/app/endpoint/retry-pending.ts";
import type { DeliveryCall } from "../../../src/app/deliver/delivery-call.ts";
import { createLaneFixture, withoutLanes, type LaneFixture } from "../lane/support.ts";
import { countingEnv, createCost } from "../support/counting.ts";
import { shardDeps } from "../support/worker.ts";

const names = (count: number) => Array.from({ length: count }, (_, i) => `/${i}`);
const HOUR_MS = 3_600_000;

/** Publishes, and has all of it wait for a retry in an hour. */
async function waiting(scene: LaneFixture, count: number): Promise<void> {
  for (let left = count; left > 0; left -= 500) await scene.publishAll(names(Math.min(left, 500)));
  await scene.db
    .prepare(
      `update delivery set next_attempt_at = ?2, attempt_count = 1, failure_count = 1, scheduled_at = created_at
       where tenant_id = ?1 and terminal_at is null`,
    )
    .bind(scene.tenant.id, scene.now() + HOUR_MS)
    .run();
}

function acting(scene: LaneFixture, bindings: Env = withoutLanes) {
  const rung: DeliveryCall[] = [];
  const woken: string[] = [];
  const shard = {
    ...shardDeps(scene.tenant, scene.context, bindings),
    now: scene.now,
    ringLater: (calls: DeliveryCall[]) => void rung.push(...calls),
    wakeLane: ({ endpointId }: { endpointId: string }) => void woken.push(endpointId),
  };
  const principal = { tenantId: scene.tenant.id, scope: "admin" as const, sourceId: null };
  const act = (body: unknown = {}) => retryPending(shard, principal, scene.endpointId, body);
  const dueCount = () =>
    scene.db
      .prepare(
        "select count(*) as n from delivery where tenant_id = ? and terminal_at is null and next_attempt_at <= ?",
      )
      .bind(scene.tenant.id, scene.now())
      .first<number>("n");
  return { act, rung, woken, dueCount };
}

test("all that waits in queues for its retry is due now, and rung for its next attempt", async () => {
  const scene = await createLaneFixture({ ordering_mode: "unordered" });
  await waiting(scene, 30);
  const { act, rung, dueCount } = acting(scene);
  expect(await act()).toEqual({ retried: 30, nextCursor: null });
  expect(await dueCount()).toBe(30);
  expect(rung.map(({ attemptNumber }) => attemptNumber)).toEqual(Array.from({ length: 30 }, () => 2));
  expect(await act()).toEqual({ retried: 0, nextCursor: null });
});

test("more than a thousand take several requests, and the cursor leads through all of them", async () => {
  const scene = await createLaneFixture({ ordering_mode: "unordered" });
  await waiting(scene, 2_600);
  const { act, dueCount } = acting(scene);
  const retried: number[] = [];
  for (let cursor: string | null = ""; cursor !== null;) {
    const done: Awaited<ReturnType<typeof act>> = await act(cursor === "" ? {} : { cursor });
    retried.push(done.retried);
    cursor = done.nextCursor;
    expect(retried.length).toBeLessThan(10);
  }
  expect(retried.length).toBeGreaterThan(1);
  expect(retried.reduce((a, b) => a + b)).toBe(2_600);
  expect(await dueCount()).toBe(2_600);
});

test("however many wait for the same moment, as a Retry-After may ask for, the cursor leads through all of them", async () => {
  const scene = await createLaneFixture({ ordering_mode: "unordered" });
  await waiting(scene, 4_600);
  const at = scene.now() + HOUR_MS;
  await scene.db
    .prepare("update delivery set next_attempt_at = ? where tenant_id = ? and terminal_at is null")
    .bind(at, scene.tenant.id)
    .run();
  const { act, dueCount } = acting(scene);
  let requests = 0;
  for (let cursor: string | null = ""; cursor !== null; requests++) {
    expect(requests).toBeLessThan(10);
    cursor = (await act(cursor === "" ? {} : { cursor })).nextCursor;
  }
  expect(await dueCount()).toBe(4_600);
});

test("a cursor tells nothing of other tenants, whose retries stay as they are", async () => {
  const [scene, other] = await Promise.all([
    createLaneFixture({ ordering_mode: "unordered" }),
    createLaneFixture({ ordering_mode: "unordered" }),
  ]);
  await waiting(other, 2_100);
  await waiting(scene, 2_100);
  const { act } = acting(scene);
  const { nextCursor } = await act();
  expect(nextCursor).not.toBeNull();
  expect(atob(nextCursor!.replaceAll("-", "+").replaceAll("_", "/"))).toMatch(/^\["time",\d+,""\]$/);
  expect(await acting(other).dueCount()).toBe(0);
});

test("in a lane the head that failed is tried now, in order, and its lane is woken", async () => {
  const scene = await createLaneFixture({ retry_policy: { delays_seconds: [3_600] } });
  await scene.publishAll(["/a", "/b"]);
  scene.answer = () => new Response("no", { status: 500 });
  await scene.createLane().run();
  expect(scene.sent.map(({ name }) => name)).toEqual(["/a"]);
  scene.answer = () => new Response("ok");
  await scene.createLane("b").run();
  expect(scene.sent).toHaveLength(1);
  const { act, woken } = acting(scene);
  expect(await act()).toEqual({ retried: 1, nextCursor: null });
  expect(woken).toEqual([scene.endpointId]);
  await scene.createLane("c").run();
  expect(scene.sent.map(({ name, attempt }) => `${name} ${attempt}`)).toEqual(["/a 1", "/a 2", "/b 1"]);
});

test.each([
  ["paused", "/pause"],
  ["disabled", "/disable"],
])("while it is %s nothing is retried: 409 held, which says what to do", async (_, verb) => {
  const scene = await createLaneFixture({ ordering_mode: "unordered" });
  await waiting(scene, 2);
  await scene.tenant.api.post(`/v1/endpoints/${scene.endpointId}${verb}`);
  const { status, body } = await scene.tenant.api.post(`/v1/endpoints/${scene.endpointId}/retry-pending`);
  expect([status, body.code]).toEqual([409, "held"]);
  expect(body.detail).toContain("Resume or enable it first.");
  expect(await acting(scene).dueCount()).toBe(0);
});

test("only an admin key may, of its own tenant; a cursor of nothing is refused", async () => {
  const [scene, other] = await Promise.all([createLaneFixture(), createLaneFixture()]);
  const path = `/v1/endpoints/${scene.endpointId}/retry-pending`;
  expect((await other.tenant.api.post(path)).status).toBe(404);
  expect((await scene.tenant.api.post(path, { cursor: "x" })).status).toBe(422);
  expect((await scene.tenant.api.post(path)).body).toEqual({ retried: 0, next_cursor: null });
});

test.each([
  ["by queues two rows", { ordering_mode: "unordered" }, 2],
  ["in a lane one row", { ordering_mode: "strict" }, 1],
])("%s a delivery", async (_, endpoint, rows) => {
  const scene = await createLaneFixture(endpoint);
  await waiting(scene, 50);
  const cost = createCost();
  const { act } = acting(scene, countingEnv(env as Env, cost));
  expect(await act()).toMatchObject({ retried: 50 });
  expect(cost.rowsWritten).toBe(50 * rows);
});
