import { beforeAll, expect, test } from "vitest";
import text from "../../../docs/questions.sql?raw";
import { deliveryId } from "../../../src/core/ids.ts";
import { fillIn, parseQuestions } from "../../support/questions.ts";
import { planOf, walksIn } from "../support/plans.ts";
import { createScene, empty, type Scene } from "../support/scene.ts";
import { fill, type SeedAttempt } from "./ledger.ts";

const MINUTE_MS = 60_000;

interface Expected {
  /** The searches that must be in its plan, of each table that grows with events. */
  searches: string[];
  /** What the API answers to the same question, as rows of the statement. */
  api(): Promise<any[]>;
}

let scene: Scene;
let delivery: string;
const read = async (path: string) => {
  const answer = await scene.tenant.api.get(path);
  expect(answer.status).toBe(200);
  return answer.body;
};

const MEASURES = [
  "limits_wait",
  "occurred_to_delivered",
  "occurred_to_relayed",
  "relay_lag",
  "relayed_to_first_request",
];
const EVENTS = "SEARCH e USING PRIMARY KEY (tenant_id=? AND id>?)";
const ATTEMPTS_OF_DELIVERY =
  "SEARCH a USING PRIMARY KEY (tenant_id=? AND event_id=? AND endpoint_id=? AND replay_no=?)";

const EXPECTED: Record<number, Expected> = {
  2: {
    searches: [
      "SEARCH delivery USING PRIMARY KEY (tenant_id=? AND event_id=? AND endpoint_id=?)",
      ATTEMPTS_OF_DELIVERY,
    ],
    api: async () =>
      (await read(`/v1/deliveries/${delivery}`)).attempts.map((attempt: any) => ({
        attempt_number: attempt.attempt_number,
        requested_at: attempt.requested_at,
        latency_ms: attempt.latency_ms,
        status_code: attempt.status_code,
        outcome_class: attempt.outcome_class,
        error_class: attempt.error_class,
        response_body_sha256: attempt.response_body_sha256,
        same_answer_run: attempt.same_answer_run,
      })),
  },
  3: {
    searches: [
      EVENTS,
      "SEARCH d USING PRIMARY KEY (tenant_id=? AND event_id=?)",
      ATTEMPTS_OF_DELIVERY.replace(")", " AND attempt_number=?)"),
      ATTEMPTS_OF_DELIVERY,
    ],
    api: async () =>
      (await read("/v1/reports/latency")).data
        .flatMap((row: any) =>
          MEASURES.flatMap((measure) => {
            const { count: n, ...percentiles } = row[`${measure}_ms`];
            const { source_name, deliveries, delivered, undelivered_events } = row;
            return n === 0
              ? []
              : [{ source_name, measure, n, ...percentiles, deliveries, delivered, undelivered_events }];
          }),
        )
        .toSorted((a: any, b: any) => a.source_name.localeCompare(b.source_name)),
  },
  4: {
    searches: [EVENTS, "SEARCH d USING INDEX delivery_subscription (subscription_id=? AND created_at>?)"],
    api: async () =>
      (await read("/v1/reports/schema-versions?schema_version=3")).data.flatMap((row: any) =>
        row.subscriptions
          .filter(({ withheld }: any) => withheld === null)
          .flatMap((of: any) =>
            (of.received.length > 0 ? of.received : [null]).map((received: any) => ({
              event_type: row.event_type,
              schema_version: row.schema_version,
              subscription_id: of.subscription_id,
              endpoint_id: of.endpoint_id,
              pinned_version: of.pinned_version,
              received_version: received?.schema_version ?? null,
              deliveries: received?.deliveries ?? null,
              last_at: received?.last_at ?? null,
            })),
          ),
      ),
  },
  8: {
    searches: [
      EVENTS,
      "SEARCH a USING PRIMARY KEY (tenant_id=? AND event_id=?)",
      "SEARCH a USING INDEX attempt_failed (tenant_id=? AND requested_at>?)",
    ],
    api: async () => {
      const rows = [];
      for (const by of ["relay_region", "worker_id"]) {
        for (const row of (await read(`/v1/reports/attempts?by=${by}`)).data) {
          const { succeeded, open, transient, rejected, unreachable, relay_faults } = row;
          rows.push({ by, value: row[by], succeeded, open, transient, rejected, unreachable, relay_faults });
        }
      }
      return rows;
    },
  },
  9: {
    searches: ["SEARCH d USING PRIMARY KEY (tenant_id=? AND event_id>?)"],
    api: async () =>
      (await read("/v1/reports/filters")).data.map((row: any) => ({
        subscription_id: row.subscription_id,
        endpoint_id: row.endpoint_id,
        deliveries: row.filter_match_steps.count,
        p95_steps: row.filter_match_steps.p95,
        max_steps: row.filter_match_steps.max,
        max_ms: row.filter_match_ms.max,
      })),
  },
  10: {
    searches: [
      "SEARCH d USING PRIMARY KEY (tenant_id=? AND event_id>?)",
      `${ATTEMPTS_OF_DELIVERY.replace(")", " AND attempt_number=?)")} LEFT-JOIN`,
    ],
    api: async () =>
      (await read("/v1/reports/latency?by=endpoint")).data.map((row: any) => ({
        endpoint_id: row.endpoint_id,
        deliveries: row.deliveries,
        limits_wait_p95: row.limits_wait_ms.p95,
        relay_lag_p95: row.relay_lag_ms.p95,
      })),
  },
};

const failed = (requestedAt: number, fields: Partial<SeedAttempt> = {}): SeedAttempt => ({
  requestedAt,
  statusCode: 404,
  outcomeClass: "transient",
  errorClass: "http_4xx",
  bodySha256: "ab".repeat(32),
  workerId: "v.aaaaaaaa.queue",
  relayRegion: "FRA",
  ...fields,
});

beforeAll(async () => {
  scene = await createScene();
  const { api } = scene.tenant;
  const post = async (path: string, body: object) => (await api.post(path, body)).body;
  const stock = await post("/v1/sources", { name: "stock" });
  const endpoint = await post("/v1/endpoints", { url: "https://other.example/hook" });
  const to = (fields: object) => post("/v1/subscriptions", { endpoint_id: endpoint.id, ...fields });
  for (const schema_version of [1, 3, 4]) await post("/v1/event-types", { name: "order.created", schema_version });
  for (const schema_version of [2, 3]) await post("/v1/event-types", { name: "user.made", schema_version });
  await api.patch("/v1/event-types/order.created", { schema_version: 4, retired: true });
  await post("/v1/event-types", { name: "secret.made", schema_version: 3, required_scope: "pii" });
  const pinned = await to({ event_type_pattern: "order.created", schema_version: 3 });
  const third = await post("/v1/endpoints", { url: "https://third.example/hook" });
  await post("/v1/subscriptions", { endpoint_id: third.id, event_type_pattern: "*.made", schema_version: 3 });
  await post("/v1/subscriptions", { endpoint_id: third.id, event_type_pattern: "order.*.eu", schema_version: 3 });
  const at = Date.now() - 30 * MINUTE_MS;
  const good = { workerId: "v.bbbbbbbb.lane", relayRegion: "AMS" };
  const ids = await fill(scene, [
    {
      at,
      occurredAt: at - 700,
      schemaVersion: 1,
      variants: [3, 4],
      deliveries: [
        {
          scheduledAt: at + 50,
          schemaVersion: 3,
          filterSteps: 12,
          attempts: [
            failed(at + 100, { bodySha256: null }),
            failed(at + 200),
            failed(at + 300),
            failed(at + 400, {
              statusCode: null,
              bodySha256: null,
              outcomeClass: "unreachable",
              errorClass: "abandoned",
            }),
            failed(at + 500),
            failed(at + 600, {
              statusCode: null,
              bodySha256: null,
              outcomeClass: "unreachable",
              errorClass: "timeout",
            }),
            failed(at + 700),
            { requestedAt: at + 800, latencyMs: 9, ...good },
          ],
        },
        {
          endpointId: endpoint.id,
          subscriptionId: pinned.id,
          schemaVersion: 3,
          filterSteps: 99,
          filterMs: 0.25,
          attempts: [{ requestedAt: at + 20, ...good }],
        },
      ],
    },
    {
      at: at + 5,
      occurredAt: at - 20,
      sourceId: stock.id,
      schemaVersion: 3,
      deliveries: [
        { attempts: [{ requestedAt: at + 9 }] },
        { replayNo: 1, createdAt: at + 10, attempts: [{ requestedAt: at + 900 }] },
        { endpointId: endpoint.id, subscriptionId: pinned.id, status: "pending", scheduledAt: null },
      ],
    },
    { at: at + 6, sourceId: stock.id, type: "order.paid.eu", schemaVersion: 3 },
    { at: at - 45 * MINUTE_MS, schemaVersion: 1, deliveries: [{ attempts: [failed(at + 50), { requestedAt: at }] }] },
    { at: at + 7, expiresAt: at + 8, deliveries: [{ filterSteps: 1_000, attempts: [failed(at + 8)] }] },
  ]);
  delivery = deliveryId({ eventId: ids[0]!, endpointId: scene.endpointId, replayNo: 0 });
  return () => empty(scene);
});

const QUESTIONS = parseQuestions(text).filter(({ number }) => EXPECTED[number] !== undefined);
const sqlOf = (question: (typeof QUESTIONS)[number]) => fillIn(question, { ten: scene.tenant.id, dlv: delivery });

test("each question that is expected is there", () => {
  expect(QUESTIONS.map(({ number }) => String(number))).toEqual(Object.keys(EXPECTED));
});

test.for(QUESTIONS)("question $number is one statement, pasted as it stands", ({ sql }) => {
  expect(sql.replaceAll(/--.*/g, "").trim().split(";")).toEqual([expect.stringMatching(/^with\s+input \(/), ""]);
});

test.for(QUESTIONS)("question $number walks no table, and uses the index that is for it", async (question) => {
  const plan = await planOf(scene.db, sqlOf(question));
  expect(walksIn(plan, "e")).toEqual([]);
  expect(plan).toEqual(expect.arrayContaining(EXPECTED[question.number]!.searches));
});

test.for(QUESTIONS)("question $number is answered in SQL as by the API", async (question) => {
  const { results } = await scene.db.prepare(sqlOf(question)).all();
  expect(results.length).toBeGreaterThan(1);
  expect(results).toEqual(await EXPECTED[question.number]!.api());
});
