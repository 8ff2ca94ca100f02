import { expect, test } from "vitest";
import { recordAttempt } from "../../../src/app/deliver/record-attempt.ts";
import type { AttemptReport } from "../../../src/app/deliver/report.ts";
import { createCloseLedger } from "../../../src/storage/ledger/close.ts";
import type { Scene } from "../support/scene.ts";
import { claim, createToldScene, record, report, type ToldScene } from "./support.ts";

const MINUTE_MS = 60_000;

/** Its endpoint has had nothing but failures for so long. */
async function hasFailedFor(scene: Scene, ms: number, disableAfterSeconds: number | null = null): Promise<number> {
  const since = Date.now() - ms;
  await scene.db
    .prepare(
      `update endpoint set failing_since = ?1, failure_noted_at = ?1, disable_after_failing_seconds = ?2 where id = ?3`,
    )
    .bind(since, disableAfterSeconds, scene.endpointId)
    .run();
  return since;
}

/** An attempt that was claimed, and what its receiver answers later; `own` makes it one of the relay's own events. */
async function begin(scene: Scene, status: number, own = false): Promise<AttemptReport> {
  const delivery = await scene.publishOne();
  if (own) {
    const sql = "update event set type = 'hooklane.delivery.dead_letter' where id = ?";
    await scene.db.prepare(sql).bind(delivery.ref.eventId).run();
  }
  await claim(scene, delivery, delivery.id);
  const [loaded] = (await scene.deps.loadDeliveries([delivery.ref])).deliveries;
  const { failingSince, disablesAt } = loaded!.endpoint;
  return { ...report(delivery, status, delivery.id), failingSince, disablesAt };
}
const end = async (scene: Scene, status: number, own = false) => record(scene, await begin(scene, status, own));
const notesOf = async (scene: ToldScene) => (await scene.notes()).map(({ type }) => type.replace("hooklane.", ""));

test("an endpoint that has failed for an hour is told of by its next failure, once", async () => {
  const scene = await createToldScene("hooklane.endpoint.failing");
  await hasFailedFor(scene, 59 * MINUTE_MS);
  await end(scene, 500);
  expect(await scene.notes()).toEqual([]);
  const since = await hasFailedFor(scene, 61 * MINUTE_MS);
  await end(scene, 503);
  expect(await scene.notes()).toEqual([
    {
      id: `failing:${scene.endpointId}:${since}`,
      type: "hooklane.endpoint.failing",
      facts: {
        endpoint_id: scene.endpointId,
        failing_since: since,
        last_status_code: 503,
        last_error_class: "http_5xx",
      },
    },
  ]);
  await end(scene, 500);
  expect(await scene.notes()).toHaveLength(1);
  await scene.publishNotes();
  await end(scene, 500);
  expect(await scene.notes()).toEqual([]);
  expect((await scene.told()).map(({ payload }) => payload)).toEqual([
    {
      endpoint_id: scene.endpointId,
      failing_since: new Date(since).toISOString(),
      last_status_code: 503,
      last_error_class: "http_5xx",
    },
  ]);
});

test("a success ends it: nothing is told by whoever began before, and the next such time is told of anew", async () => {
  const scene = await createToldScene("hooklane.*");
  await hasFailedFor(scene, 61 * MINUTE_MS);
  const late = await begin(scene, 500);
  await end(scene, 200);
  await record(scene, late);
  expect(await scene.notes()).toEqual([]);
  for (const minutes of [90, 61]) {
    await hasFailedFor(scene, minutes * MINUTE_MS);
    await end(scene, 500);
  }
  expect(await notesOf(scene)).toEqual(["endpoint.failing", "endpoint.failing"]);
});

test("a close whose answer was lost, and one that comes twice, tell of it once", async () => {
  const scene = await createToldScene("hooklane.*");
  await hasFailedFor(scene, 61 * MINUTE_MS);
  const attempt = await begin(scene, 500);
  const { closeAttempts } = createCloseLedger(scene.db);
  const lost: typeof closeAttempts = async (closings) => {
    await closeAttempts([...closings, ...closings]);
    throw new Error("Network connection lost.");
  };
  await expect(recordAttempt({ ...scene.deps, closeAttempts: lost }, attempt)).rejects.toThrow();
  await record(scene, attempt);
  expect(await notesOf(scene)).toEqual(["endpoint.failing"]);
});

test("while nobody asks nothing is written, and who asks later is told by the next failure", async () => {
  const scene = await createToldScene(null);
  await hasFailedFor(scene, 61 * MINUTE_MS);
  await end(scene, 500);
  const told = "select failing_told_since from endpoint where id = ?";
  expect(await scene.db.prepare(told).bind(scene.endpointId).first("failing_told_since")).toBeNull();
  const subscription = { endpoint_id: scene.listenerId, event_type_pattern: "hooklane.*" };
  await scene.tenant.api.post("/v1/subscriptions", subscription);
  await end(scene, 500);
  expect(await notesOf(scene)).toEqual(["endpoint.failing"]);
});

test("the failure of an operational event's own delivery tells of nothing, nor does the endpoint that it disables", async () => {
  const scene = await createToldScene("hooklane.*");
  await hasFailedFor(scene, 61 * MINUTE_MS);
  await end(scene, 500, true);
  expect(await scene.notes()).toEqual([]);
  await end(scene, 500);
  expect(await notesOf(scene)).toEqual(["endpoint.failing"]);
  await hasFailedFor(scene, 120 * MINUTE_MS, 3_600);
  await end(scene, 500, true);
  expect((await scene.tenant.api.get(`/v1/endpoints/${scene.endpointId}`)).body.disabled_reason).toBe("failing");
  expect(await scene.notes()).toHaveLength(1);
});

test("one that the failure disables is told of as that", async () => {
  const scene = await createToldScene("hooklane.*");
  await hasFailedFor(scene, 61 * MINUTE_MS, 3_600);
  await end(scene, 500);
  expect(await scene.notes()).toMatchObject([{ type: "hooklane.endpoint.disabled", facts: { reason: "failing" } }]);
});

test("a failure at a URL that is the endpoint's no more says nothing of it", async () => {
  const scene = await createToldScene("hooklane.*");
  await hasFailedFor(scene, 61 * MINUTE_MS);
  const attempt = await begin(scene, 500);
  await record(scene, { ...attempt, endpointUrl: "https://former.example/" });
  expect(await scene.notes()).toEqual([]);
});
