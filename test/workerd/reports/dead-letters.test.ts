import { expect, onTestFinished, test } from "vitest";
import { createDeadLettersReport } from "../../../src/storage/ledger/reports/dead-letters.ts";
import { createTestTenant } from "../support/api.ts";
import { createScene, empty, type Scene } from "../support/scene.ts";
import { HOUR_MS, record, recordDead } from "./support.ts";

const deadLetters = async ({ tenant }: Pick<Scene, "tenant">, query = "") => {
  const answer = await tenant.api.get(`/v1/reports/dead-letters${query}`);
  expect(answer.status).toBe(200);
  return answer.body;
};

async function sceneOf(): Promise<Scene> {
  const scene = await createScene();
  onTestFinished(() => empty(scene));
  return scene;
}

test("a tenant without dead letters has an answer that is empty and complete", async () => {
  const tenant = await createTestTenant();
  expect(await deadLetters({ tenant })).toEqual({
    data: [],
    window: { from: null, until: expect.any(String) },
    complete: true,
    complete_from: null,
    groups: 0,
  });
});

test("what is open is counted by subscription and reason, and what was replayed or has expired is not", async () => {
  const scene = await sceneOf();
  const now = Date.now();
  const at = (hours: number) => now - hours * HOUR_MS;
  const ids = await record(scene, [
    { finalOutcome: "exhausted", terminalAt: at(50) },
    { finalOutcome: "exhausted", terminalAt: at(30) },
    { finalOutcome: "rejected", terminalAt: at(20) },
    { finalOutcome: "rejected", terminalAt: at(10), replayedAs: 1 },
    { finalOutcome: "gone", terminalAt: at(10), expiresAt: now - 1 },
    { status: "expired", finalOutcome: "expired", terminalAt: at(5) },
    { status: "failed", finalOutcome: "endpoint_disabled", terminalAt: at(5) },
    { status: "succeeded", terminalAt: at(5) },
    { status: "pending" },
  ]);
  const report = await deadLetters(scene);
  const subscriptionId = (await scene.tenant.api.get("/v1/subscriptions")).body.data[0].id;
  expect(report).toEqual({
    data: [
      {
        subscription_id: subscriptionId,
        endpoint_id: scene.endpointId,
        final_outcome: "exhausted",
        deliveries: 2,
        oldest_at: new Date(at(50)).toISOString(),
        newest_at: new Date(at(30)).toISOString(),
        example_delivery_id: ids[1],
      },
      expect.objectContaining({ final_outcome: "rejected", deliveries: 1, example_delivery_id: ids[2] }),
    ],
    window: { from: null, until: expect.any(String) },
    complete: true,
    complete_from: null,
    groups: 2,
  });
  expect((await deadLetters(scene, "?window=1d")).data).toEqual([report.data[1]]);
  const listed = await scene.tenant.api.get("/v1/deliveries?status=dead_letter");
  expect(listed.body.data).toHaveLength(3);
});

test("a replay takes it off the count, and its own death puts it back", async () => {
  const scene = await sceneOf();
  const [id] = await record(scene, [{ finalOutcome: "exhausted", terminalAt: Date.now() }]);
  const replay = await scene.tenant.api.post(`/v1/deliveries/${id}/replay`);
  expect(replay.status).toBe(202);
  expect((await deadLetters(scene)).data).toEqual([]);
  await scene.db
    .prepare(
      `update delivery set status = 'dead_letter', terminal_at = ?, final_outcome = 'rejected', next_attempt_at = null
       where tenant_id = ? and replay_no = 1`,
    )
    .bind(Date.now(), scene.tenant.id)
    .run();
  expect((await deadLetters(scene)).data).toEqual([
    expect.objectContaining({ final_outcome: "rejected", deliveries: 1, example_delivery_id: replay.body.id }),
  ]);
});

test("another tenant's are never counted", async () => {
  const [scene, other] = [await sceneOf(), await sceneOf()];
  await record(other, [{ terminalAt: Date.now() }]);
  expect((await deadLetters(scene)).data).toEqual([]);
});

test("a hundred thousand are counted, from the index alone", async () => {
  const scene = await sceneOf();
  const now = Date.now();
  await recordDead(scene, 100_000, now);
  const report = await deadLetters(scene);
  expect(report.complete).toBe(true);
  expect(report.data.map((row: any) => [row.final_outcome, row.deliveries])).toEqual([
    ["exhausted", 50_000],
    ["rejected", 50_000],
  ]);
});

test("more than it looks at is told, and the newest are counted", async () => {
  const scene = await sceneOf();
  const now = Date.now();
  await recordDead(scene, 500, now - HOUR_MS);
  // What was replayed is walked over all the same, and never counted.
  await recordDead(scene, 500, now, { open: false });
  const few = createDeadLettersReport(scene.db, 600);
  const counted = await few.countDeadLetters(scene.tenant.id, null, now);
  expect(counted).toMatchObject({
    completeFrom: now - HOUR_MS - 99 + 1,
    data: [{ deliveries: 50 }, { deliveries: 50 }],
  });
  const none = await createDeadLettersReport(scene.db, 400).countDeadLetters(scene.tenant.id, null, now);
  expect(none).toEqual({ data: [], groups: 0, completeFrom: now - 398 });
});
