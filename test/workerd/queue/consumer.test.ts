import { createExecutionContext, createMessageBatch, getQueueResult } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { consumeReports, consumeRings, dropDeadRings } from "../../../src/queue/consumer.ts";
import { sendRings } from "../../../src/queue/producer.ts";
import { composeDeliver } from "../../../src/compose.ts";
import { createScene, gate, type Scene } from "../support/scene.ts";

let answer: () => Promise<Response>;
beforeEach(() => {
  answer = async () => new Response("ok");
  vi.spyOn(globalThis, "fetch").mockImplementation(() => answer());
});
afterEach(() => vi.restoreAllMocks());

const message = (id: string, body: unknown) => ({ id, timestamp: new Date(), attempts: 1, body });
const batchOf = (bodies: unknown[]) =>
  createMessageBatch(
    "hooklane-first-attempts",
    bodies.map((body, i) => message(String(i), body)),
  );
const ring = (scene: Scene, ...deliveries: { id: string }[]) => ({
  shard: scene.tenant.shard,
  tenant: scene.tenant.id,
  deliveries: deliveries.map(({ id }) => [id, 1]),
});
const depsOf = (scene: Scene) => (shard: string) => composeDeliver(env as Env, scene.context.context, shard, "queue");

test("a message is acknowledged while its receiver hangs, and another endpoint's delivery does not wait for it", async () => {
  const [hanging, quick] = [await createScene(), await createScene()];
  const [slow, fast] = [await hanging.publishOne(), await quick.publishOne()];
  const hang = gate();
  let isFirst = true;
  answer = async () => {
    if (isFirst) {
      isFirst = false;
      await hang.opened;
    }
    return new Response("ok");
  };
  const batch = batchOf([ring(hanging, slow), ring(quick, fast)]);
  await consumeRings(batch, depsOf(hanging));
  expect((await getQueueResult(batch, createExecutionContext())).explicitAcks).toEqual(["0", "1"]);
  await expect.poll(async () => [(await slow.read()).status, (await fast.read()).status]).toContain("succeeded");
  hang.open();
  await hanging.context.settled();
  expect([(await slow.read()).status, (await fast.read()).status]).toEqual(["succeeded", "succeeded"]);
});

test("a ledger that is away puts the message back", async () => {
  const scene = await createScene();
  const delivery = await scene.publishOne();
  const batch = batchOf([ring(scene, delivery)]);
  await consumeRings(batch, (shard) => ({
    ...depsOf(scene)(shard),
    loadDeliveries: () => Promise.reject(new Error("D1 DB is overloaded")),
  }));
  const { explicitAcks, retryMessages } = await getQueueResult(batch, createExecutionContext());
  expect({ explicitAcks, retryMessages }).toEqual({
    explicitAcks: [],
    retryMessages: [expect.objectContaining({ msgId: "0" })],
  });
});

test("a message that is none is acknowledged and does not keep the others back", async () => {
  const scene = await createScene();
  const delivery = await scene.publishOne();
  const batch = batchOf(["junk", { shard: 1 }, ring(scene, delivery)]);
  await consumeRings(batch, depsOf(scene));
  expect((await getQueueResult(batch, createExecutionContext())).explicitAcks.toSorted()).toEqual(["0", "1", "2"]);
  await scene.context.settled();
  expect(await delivery.read()).toMatchObject({ status: "succeeded" });
});

test("a report that the ledger refuses stays in its queue, and is recorded when it takes it", async () => {
  const scene = await createScene();
  const delivery = await scene.publishOne();
  const reports: unknown[] = [];
  const deps = depsOf(scene)(scene.tenant.shard);
  const refusing = { ...deps, closeAttempts: () => Promise.reject(new Error("D1 is away")) };
  const batch = batchOf([ring(scene, delivery)]);
  await consumeRings(batch, () => ({ ...refusing, queueReport: async (report) => void reports.push(report) }));
  await scene.context.settled();
  expect(await delivery.read()).toMatchObject({ status: "processing" });

  // As it comes out of the queue.
  const body = JSON.parse(JSON.stringify({ shard: scene.tenant.shard, report: reports[0] }));
  const refused = createMessageBatch("hooklane-outcomes", [message("r", body)]);
  await consumeReports(refused, () => refusing);
  expect((await getQueueResult(refused, createExecutionContext())).retryMessages).toMatchObject([{ msgId: "r" }]);
  const taken = createMessageBatch("hooklane-outcomes", [message("r", body)]);
  await consumeReports(taken, () => deps);
  expect((await getQueueResult(taken, createExecutionContext())).explicitAcks).toEqual(["r"]);
  expect(await delivery.read()).toMatchObject({ status: "succeeded", attempt_count: 1 });
});

test("dead doorbells are dropped: their rows are due and ring again", async () => {
  const batch = batchOf([{}, {}]);
  dropDeadRings(batch);
  expect((await getQueueResult(batch, createExecutionContext())).ackAll).toBe(true);
});

test("many deliveries share a message, and no message outgrows the queue's limit", async () => {
  const sent: { body: { deliveries: unknown[] } }[][] = [];
  const queue = { sendBatch: async (messages: never[]) => void sent.push(messages) } as unknown as Queue;
  const call = (i: number) => ({ tenantId: `ten_${i % 2}`, deliveryId: "dlv_".padEnd(50, "x"), attemptNumber: 1 });
  await sendRings(
    queue,
    "0",
    Array.from({ length: 12_001 }, (_, i) => call(i)),
    0,
  );
  const messages = sent.flat();
  expect(messages.reduce((sum, { body }) => sum + body.deliveries.length, 0)).toBe(12_001);
  expect(Math.max(...messages.map(({ body }) => JSON.stringify(body).length))).toBeLessThan(100_000);
  expect(Math.max(...sent.map((part) => part.length))).toBeLessThanOrEqual(100);
  expect(Math.max(...sent.map((part) => JSON.stringify(part).length))).toBeLessThan(256_000);
});
