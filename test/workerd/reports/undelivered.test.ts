import { expect, onTestFinished, test } from "vitest";
import { createUndeliveredReport } from "../../../src/storage/ledger/reports/undelivered.ts";
import { createTestTenant } from "../support/api.ts";
import { createScene, empty, endAllOpen, type Scene } from "../support/scene.ts";
import { HOUR_MS, record } from "./support.ts";

const undelivered = async ({ tenant }: Pick<Scene, "tenant">, query = "") => {
  const answer = await tenant.api.get(`/v1/reports/undelivered${query}`);
  expect(answer.status).toBe(200);
  return answer.body;
};

async function sceneOf(endpoint: Record<string, unknown> = {}): Promise<Scene> {
  const scene = await createScene(endpoint);
  onTestFinished(() => empty(scene));
  return scene;
}

const iso = (time: number) => new Date(time).toISOString();

test("a tenant that owes nothing has an answer that is empty and complete", async () => {
  const tenant = await createTestTenant();
  expect(await undelivered({ tenant })).toEqual({
    data: [],
    window: { from: null, until: expect.any(String) },
    complete: true,
    complete_from: null,
    groups: 0,
  });
  expect((await tenant.api.get("/v1/reports/undelivered?window=1h")).body.code).toBe("validation_failed");
});

test("each endpoint has the oldest that has not ended and how many there are, whoever delivers them", async () => {
  const scene = await sceneOf();
  const { api } = scene.tenant;
  const endpoints: string[] = [];
  for (const ordering_mode of ["strict", "keyed"]) {
    const { id } = (await api.post("/v1/endpoints", { url: "https://consumer.example/other", ordering_mode })).body;
    await api.post("/v1/subscriptions", { endpoint_id: id, event_type_pattern: "a.*" });
    endpoints.push(id);
  }
  const [strict, keyed] = endpoints;
  const now = Date.now();
  const at = (hours: number) => now - hours * HOUR_MS;
  const ids = await record(scene, [
    { status: "pending", createdAt: at(5) },
    { status: "processing", createdAt: at(6), attempts: [{ at: at(1), outcomeClass: null }] },
    { status: "succeeded", createdAt: at(9) },
    { status: "pending", createdAt: at(20), expiresAt: now - 1 },
    { status: "pending", createdAt: at(8), endpointId: strict!, laneKey: "" },
    { status: "pending", createdAt: at(7), endpointId: strict!, laneKey: "" },
    { status: "pending", createdAt: at(2), endpointId: keyed!, laneKey: "a" },
    { status: "pending", createdAt: at(3), endpointId: keyed!, laneKey: "b" },
    { status: "pending", createdAt: at(1), endpointId: keyed!, replayNo: 1, laneKey: "0" },
  ]);
  const other = await sceneOf();
  await record(other, [{ status: "pending", createdAt: at(99) }]);

  const report = await undelivered(scene);
  expect(report.data).toEqual([
    { endpoint_id: strict, depth: 2, oldest_at: iso(at(8)), oldest_delivery_id: ids[4] },
    { endpoint_id: scene.endpointId, depth: 2, oldest_at: iso(at(6)), oldest_delivery_id: ids[1] },
    { endpoint_id: keyed, depth: 3, oldest_at: iso(at(3)), oldest_delivery_id: ids[7] },
  ]);
  expect(report).toMatchObject({ complete: true, groups: 3 });
});

test("what is held while its endpoint is paused is undelivered like anything else", async () => {
  const scene = await sceneOf();
  const [id] = await record(scene, [{ status: "pending" }]);
  await scene.tenant.api.post(`/v1/endpoints/${scene.endpointId}/pause`);
  const delivery = await scene.publishOne();
  expect((await undelivered(scene)).data).toMatchObject([{ depth: 2, oldest_delivery_id: id }]);
  expect(delivery.id).not.toBe(id);
});

test("a count that was not made to its end is null, never too small, and the report says that it is not complete", async () => {
  const scene = await sceneOf({ ordering_mode: "strict" });
  await endAllOpen(scene.db);
  const now = Date.now();
  const ids = await record(
    scene,
    Array.from({ length: 20 }, (_, n) => ({ status: "pending", createdAt: now - 50_000 + n, laneKey: "" })),
  );
  const counted = (limit: number) => createUndeliveredReport(scene.db, limit).listUndelivered(scene.tenant.id, now);
  expect(await counted(1_000)).toMatchObject({ complete: true, data: [{ depth: 20, oldestAt: now - 50_000 }] });
  expect(await counted(10)).toMatchObject({ complete: false, data: [{ depth: null, oldestAt: now - 50_000 }] });

  // Two lanes share a limit that does not divide evenly.
  const second = (
    await scene.tenant.api.post("/v1/endpoints", { url: "https://consumer.example/b", ordering_mode: "strict" })
  ).body.id;
  await scene.tenant.api.post("/v1/subscriptions", { endpoint_id: second, event_type_pattern: "a.*" });
  await record(scene, [{ status: "pending", endpointId: second, createdAt: now - 10, laneKey: "" }]);
  expect(await counted(15)).toMatchObject({
    complete: false,
    groups: 2,
    data: [{ depth: null }, { endpointId: second, depth: 1, oldestAt: now - 10 }],
  });

  // One that is in queues too, with what has expired in front of its lane.
  const mixed = await sceneOf({ ordering_mode: "strict" });
  await record(mixed, [
    { status: "pending", createdAt: now - 10 },
    ...Array.from({ length: 12 }, () => ({ status: "pending", laneKey: "", expiresAt: now - 1 })),
    { status: "pending", createdAt: now - 20, laneKey: "" },
  ]);
  const seen = await createUndeliveredReport(mixed.db, 10).listUndelivered(mixed.tenant.id, now);
  expect(seen).toMatchObject({ complete: false, data: [{ depth: null, oldestAt: now - 10 }] });
  await empty(mixed);

  const queued = await sceneOf();
  await record(
    queued,
    Array.from({ length: 20 }, () => ({ status: "pending" })),
  );
  const few = await createUndeliveredReport(queued.db, 10).listUndelivered(queued.tenant.id, now);
  expect(few.complete).toBe(false);
  expect(few.data.every(({ depth }) => depth === null)).toBe(true);
  expect(ids).toHaveLength(20);
});

test("endpoints whose oldest are as old come in the order of their ids, as in SQL", async () => {
  const scene = await sceneOf();
  const { api } = scene.tenant;
  const { id } = (await api.post("/v1/endpoints", { url: "https://consumer.example/b" })).body;
  await api.post("/v1/subscriptions", { endpoint_id: id, event_type_pattern: "a.*" });
  const endpoints = [scene.endpointId, id].toSorted();
  const createdAt = Date.now() - HOUR_MS;
  // The greater id has the smaller event.
  await record(
    scene,
    endpoints.toReversed().map((endpointId) => ({ status: "pending", createdAt, endpointId })),
  );
  expect((await undelivered(scene)).data.map((row: { endpoint_id: string }) => row.endpoint_id)).toEqual(endpoints);
});
