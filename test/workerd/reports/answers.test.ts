import { expect, test } from "vitest";
import { deliveryId } from "../../../src/core/ids.ts";
import { createTestTenant } from "../support/api.ts";
import { createScene } from "../support/scene.ts";
import { seed, type SeedAttempt } from "./ledger.ts";

const A = "aa".repeat(32);
const B = "bb".repeat(32);
const NOW = Date.now();

const answer = (statusCode: number, bodySha256: string): SeedAttempt => ({
  requestedAt: NOW,
  statusCode,
  bodySha256,
  outcomeClass: statusCode < 300 ? "success" : "transient",
  errorClass: statusCode < 300 ? null : statusCode < 500 ? "http_4xx" : "http_5xx",
});
const none = (errorClass: string): SeedAttempt => ({
  requestedAt: NOW,
  statusCode: null,
  outcomeClass: "unreachable",
  errorClass,
});

test("each attempt of a delivery says how often its answer has come in a row, in both places it is read", async () => {
  const scene = await createScene();
  const attempts = [
    answer(503, A),
    answer(404, A),
    answer(404, B),
    answer(404, B),
    none("abandoned"),
    answer(404, B),
    none("timeout"),
    answer(404, B),
    { ...answer(404, B), latencyMs: null, statusCode: null, outcomeClass: null, errorClass: null, bodySha256: null },
  ];
  const [eventId] = await seed(scene, [{ at: NOW, deliveries: [{ status: "processing", attempts }] }]);
  const id = deliveryId({ eventId: eventId!, endpointId: scene.endpointId, replayNo: 0 });
  const { body } = await scene.tenant.api.get(`/v1/deliveries/${id}`);
  const runs = [1, 1, 1, 2, null, 3, null, 1, null];
  expect(body.attempts.map((attempt: any) => attempt.same_answer_run)).toEqual(runs);
  expect(body.last_answer_run).toEqual({
    count: 1,
    status_code: 404,
    response_body_sha256: B,
    first_attempt_number: 8,
    last_attempt_number: 8,
  });
  const list = await scene.tenant.api.get(`/v1/deliveries/${id}/attempts`);
  expect(list.body.data).toEqual(body.attempts);
  const other = await createTestTenant();
  expect((await other.api.get(`/v1/deliveries/${id}/attempts`)).status).toBe(404);
});

test("a delivery without an attempt has no answer, and one whose last attempt got none has none either", async () => {
  const scene = await createScene();
  const [untried, unheard] = await seed(scene, [
    { at: NOW, deliveries: [{ status: "pending" }] },
    { at: NOW, deliveries: [{ status: "pending", attempts: [answer(500, A), none("connect")] }] },
  ]);
  for (const eventId of [untried!, unheard!]) {
    const id = deliveryId({ eventId, endpointId: scene.endpointId, replayNo: 0 });
    expect((await scene.tenant.api.get(`/v1/deliveries/${id}`)).body.last_answer_run).toBe(null);
  }
});
