import { beforeAll, expect, test } from "vitest";
import text from "../../../docs/questions.sql?raw";
import { fillIn, parseQuestions, type Question } from "../../support/questions.ts";
import { planOf, walksIn } from "../support/plans.ts";
import { createScene, type Scene } from "../support/scene.ts";
import { HOUR_MS, MINUTE_MS, record } from "./support.ts";

interface Expected {
  /** The search that must be in its plan, of each table that grows with events. */
  searches: string[];
  /** What the API answers to the same question, as rows of the statement. */
  api(scene: Scene): Promise<any[]>;
}

const dataOf = (path: string) => async (scene: Scene) => (await scene.tenant.api.get(path)).body.data;

/** One for each statement of the file. */
const EXPECTED: Record<number, Expected> = {
  1: {
    searches: [
      "SEARCH a USING INDEX attempt_failed (tenant_id=? AND requested_at>?)",
      "SEARCH delivery USING INDEX delivery_ended (tenant_id=? AND status=? AND terminal_at>?)",
    ],
    api: dataOf("/v1/reports/failures"),
  },
  5: {
    searches: ["SEARCH delivery USING COVERING INDEX delivery_ended (tenant_id=? AND status=? AND terminal_at>?)"],
    api: dataOf("/v1/reports/dead-letters"),
  },
  6: {
    searches: [
      "SEARCH s USING INDEX subscription_disabled (tenant_id=? AND last_disabled_at>?)",
      "SEARCH ep USING INDEX endpoint_disabled (tenant_id=? AND last_disabled_at>?)",
    ],
    api: dataOf("/v1/reports/disabled"),
  },
  7: {
    searches: [
      "SEARCH delivery USING INDEX delivery_due (status=?)",
      "SEARCH delivery USING INDEX delivery_lane (endpoint_id=? AND lane_key>?)",
    ],
    api: dataOf("/v1/reports/undelivered"),
  },
};

/** Those of one delivery, of latencies, versions, workers and filters are asked by questions-of-time.test.ts. */
const OF_TIME = [2, 3, 4, 8, 9, 10];
const QUESTIONS = parseQuestions(text).filter(({ number }) => !OF_TIME.includes(number));

let scene: Scene;
beforeAll(async () => {
  scene = await createScene();
  const { api } = scene.tenant;
  const endpoint = await api.post("/v1/endpoints", { url: "https://consumer.example/other" });
  await api.post("/v1/subscriptions", { endpoint_id: endpoint.body.id, event_type_pattern: "order.*" });
  const now = Date.now();
  const at = (minutes: number) => now - minutes * MINUTE_MS;
  await record(scene, [
    {
      terminalAt: at(10),
      lastErrorClass: "http_5xx",
      attempts: [
        { at: at(40), errorClass: "timeout" },
        { at: at(30), errorClass: "http_5xx" },
        { at: at(11), errorClass: "http_5xx" },
      ],
    },
    { status: "succeeded", attempts: [{ at: at(20), errorClass: "http_5xx" }, { at: at(19) }] },
    {
      status: "succeeded",
      endpointId: endpoint.body.id,
      attempts: [{ at: at(1), errorClass: "internal" }, { at: at(1) }],
    },
    { endpointId: endpoint.body.id, finalOutcome: "rejected", lastErrorClass: "http_4xx", terminalAt: at(3) },
    { endpointId: endpoint.body.id, finalOutcome: "rejected", terminalAt: at(300) },
    { endpointId: endpoint.body.id, finalOutcome: "abandoned", lastErrorClass: "abandoned", terminalAt: at(2) },
    { finalOutcome: "gone", lastErrorClass: "gone", terminalAt: at(2), replayedAs: 33 },
    { finalOutcome: "gone", terminalAt: at(2), expiresAt: now - 1 },
    { status: "failed", finalOutcome: "endpoint_disabled", terminalAt: now - HOUR_MS / 2 },
    { status: "expired", finalOutcome: "expired", lastErrorClass: "dns", terminalAt: at(4), replayNo: 33 },
    { status: "pending", createdAt: at(50), attempts: [{ at: at(50), errorClass: "connect" }] },
    { status: "pending", createdAt: at(70), endpointId: endpoint.body.id, laneKey: "a" },
  ]);
  await api.post(`/v1/endpoints/${endpoint.body.id}/disable`);
});

const sqlOf = (question: Question) => fillIn(question, { ten: scene.tenant.id });

test("each question has an answer to compare with", () => {
  expect(QUESTIONS.length).toBeGreaterThan(1);
  expect(QUESTIONS.map(({ number }) => String(number))).toEqual(Object.keys(EXPECTED));
});

test.for(QUESTIONS)("question $number is one statement, pasted as it stands", ({ sql }) => {
  expect(sql.replaceAll(/--.*/g, "").trim().split(";")).toEqual([expect.stringMatching(/^with\s+input \(/), ""]);
});

test.for(QUESTIONS)("question $number walks no table, and uses the index that is for it", async (question) => {
  const plan = await planOf(scene.db, sqlOf(question));
  expect(walksIn(plan)).toEqual([]);
  expect(plan).toEqual(expect.arrayContaining(EXPECTED[question.number]!.searches));
});

test.for(QUESTIONS)("question $number is answered in SQL as by the API", async (question) => {
  const { results } = await scene.db.prepare(sqlOf(question)).all();
  expect(results.length).toBeGreaterThan(0);
  expect(results).toEqual(await EXPECTED[question.number]!.api(scene));
});
