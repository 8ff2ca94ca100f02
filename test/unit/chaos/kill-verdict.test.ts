import { expect, test } from "vitest";
import { planKills } from "../../e2e/support/kills/plan.ts";
import { judge, type Evidence, type Visit } from "../../e2e/support/kills/verdict.ts";

const success = { outcomeClass: "success", errorClass: null, statusCode: 200, latencyMs: 1 as number | null };
const abandoned = { outcomeClass: "unreachable", errorClass: "abandoned", statusCode: null, latencyMs: null };

const visit = (deliveryId: string, attempt: number, arrivedAt: number, answer: Visit["answer"]): Visit => ({
  deliveryId,
  endpoint: "strict",
  key: deliveryId === "dlv_a" ? "a" : "b",
  attempt,
  arrivedAt,
  answeredAt: answer === null ? null : arrivedAt + 1,
  answeredAtMs: answer === null ? null : 1_000 + arrivedAt,
  answer,
});

/** Two events in order: A is cut off by a kill after its answer and delivered again, then B is refused once. */
function createEvidence() {
  const delivery = (id: string, attempts: Evidence["ledger"]["deliveries"][number]["attempts"]) => ({
    id: `dlv_${id}`,
    eventId: `evt_${id}`,
    endpointId: "ep",
    status: "succeeded",
    attemptCount: attempts.length,
    attempts,
  });
  const owed = [{ endpointId: "ep", lane: "strict" }];
  return {
    published: [
      { key: "a", eventId: "evt_a", sentAt: 0, acknowledgedAt: 1, behind: null, owed },
      { key: "b", eventId: "evt_b", sentAt: 2, acknowledgedAt: 3, behind: null as string | null, owed },
    ],
    visits: [
      visit("dlv_a", 1, 10, 200),
      visit("dlv_a", 2, 20, 200),
      visit("dlv_b", 1, 30, 503),
      visit("dlv_b", 2, 40, 200),
    ],
    ledger: {
      integrity: "ok",
      events: [
        { id: "evt_a", key: "a" },
        { id: "evt_b", key: "b" },
      ],
      deliveries: [
        delivery("a", [
          { number: 1, requestedAt: 1_009, ...abandoned },
          { number: 2, requestedAt: 1_019, ...success },
        ]),
        delivery("b", [
          {
            number: 1,
            requestedAt: 1_029,
            outcomeClass: "transient",
            errorClass: "http_5xx",
            statusCode: 503,
            latencyMs: 1,
          },
          { number: 2, requestedAt: 1_039, ...success },
        ]),
      ],
    },
    targets: [{ id: "ep", name: "strict", cap: 1 }],
    killedAt: [1_013],
    timeoutMs: 3_000,
  } satisfies Evidence;
}

test("what a crash may do is counted and is no problem", () => {
  expect(judge(createEvidence())).toEqual({
    lost: 0,
    doubledRows: 0,
    doubled: 1,
    doubledAfterAnswer: 1,
    abandoned: 1,
    outOfOrder: 0,
    ordered: 1,
    answerToKillMs: 3,
    problems: [],
  });
});

test("an answer that left when its relay was dead already is no answer", () => {
  const evidence = createEvidence();
  evidence.killedAt = [1_009];
  expect(judge(evidence)).toMatchObject({ doubled: 1, doubledAfterAnswer: 0, problems: [] });
});

type Faulty = ReturnType<typeof createEvidence>;
const a = ({ ledger }: Faulty) => ledger.deliveries[0]!;
const b = ({ ledger }: Faulty) => ledger.deliveries[1]!;

test.each<[string, (evidence: Faulty) => void, object]>([
  ["an event is missing", ({ ledger }) => ledger.events.pop(), {}],
  ["an event has another id", ({ ledger }) => (ledger.events[0]!.id = "evt_c"), {}],
  ["a key has two events", ({ ledger }) => ledger.events.push({ id: "evt_c", key: "a" }), { doubledRows: 1 }],
  ["an event was acknowledged to nobody", ({ ledger }) => ledger.events.push({ id: "evt_c", key: "c" }), {}],
  ["a delivery is missing", ({ ledger }) => ledger.deliveries.pop(), { lost: 1 }],
  ["a delivery is there twice", (it) => it.ledger.deliveries.push({ ...a(it), id: "dlv_c" }), { doubledRows: 1 }],
  ["a delivery did not succeed", (it) => (a(it).status = "dead_letter"), { lost: 1 }],
  ["nothing was received", ({ visits }) => visits.splice(2), { lost: 1 }],
  ["another payload was received", ({ visits }) => (visits[0]!.key = "b"), {}],
  ["something else was received", ({ visits }) => visits.push(visit("dlv_c", 1, 50, 200)), {}],
  ["an attempt is missing", (it) => b(it).attempts.shift(), {}],
  ["numbers have a gap", (it) => (b(it).attempts[1]!.number = 3), {}],
  ["a request has no attempt", ({ visits }) => visits.push(visit("dlv_b", 3, 50, null)), {}],
  ["an attempt was requested twice", ({ visits }) => visits.push(visit("dlv_b", 2, 50, 200)), {}],
  ["a recorded attempt was not requested", ({ visits }) => visits.splice(2, 1), {}],
  ["another answer is on record", ({ visits }) => (visits[2]!.answer = 200), {}],
  ["a success was followed by a request", (it) => Object.assign(a(it).attempts[0]!, success), {}],
  ["an attempt has no outcome", (it) => (a(it).attempts[0]!.outcomeClass = null), {}],
  ["nobody was killed under an abandoned attempt", (it) => (it.killedAt = [1_025]), {}],
  [
    "a timeout came at once",
    (it) => Object.assign(b(it).attempts[0]!, { ...abandoned, errorClass: "timeout", latencyMs: 1 }),
    {},
  ],
  ["the later event came first", ({ visits }) => (visits[2]!.arrivedAt = 15), { outOfOrder: 1 }],
  ["the database is damaged", ({ ledger }) => (ledger.integrity = "row 1 missing from index"), {}],
])("it is a problem when %s", (_, spoil, counts) => {
  const evidence = createEvidence();
  spoil(evidence);
  const verdict = judge(evidence);
  expect(verdict).toMatchObject(counts);
  expect(verdict.problems).not.toEqual([]);
});

test("events that were sent before the other was acknowledged have no order, but those of one batch have", () => {
  const evidence = createEvidence();
  evidence.visits[2]!.arrivedAt = 15;
  evidence.published[1]!.sentAt = 0;
  expect(judge(evidence)).toMatchObject({ ordered: 0, outOfOrder: 0, problems: [] });
  evidence.published[1]!.behind = "a";
  expect(judge(evidence)).toMatchObject({ ordered: 1, outOfOrder: 1 });
});

test("more was under way than a lane or a cap allows, where one kill cut it off", () => {
  const evidence = createEvidence();
  Object.assign(b(evidence).attempts[0]!, { requestedAt: 1_012, ...abandoned });
  expect(judge(evidence).problems).toEqual([
    "2 requests were under way of ep at kill 1",
    "2 requests were under way of strict at kill 1",
  ]);
  evidence.targets[0]!.cap = 2;
  evidence.published[1]!.owed = [{ endpointId: "ep", lane: "other" }];
  expect(judge(evidence).problems).toEqual([]);
});

test("a plan is its seed's, has each kind of kill in seven rounds, and begins with a relay that runs", () => {
  for (let seed = 0; seed < 50; seed++) {
    const { first, kills } = planKills(seed, 12);
    expect(planKills(seed, 12)).toEqual({ first, kills });
    expect(first).toMatchObject({ round: 0, kind: "starting" });
    expect(new Set(kills.slice(0, 7).map(({ kind }) => kind)).size).toBe(7);
    expect(kills[0]!.kind).not.toBe("starting");
  }
  expect(planKills(1, 12)).not.toEqual(planKills(2, 12));
});
