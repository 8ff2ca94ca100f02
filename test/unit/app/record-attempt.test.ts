import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { deliveryId } from "../../../src/core/ids.ts";
import type { AttemptLine } from "../../../src/app/deliver/attempt-line.ts";
import { recordAttempt, type RecordAttemptDeps } from "../../../src/app/deliver/record-attempt.ts";
import type { AttemptReport } from "../../../src/app/deliver/report.ts";
import { attemptReport, POLICY } from "./support/report.ts";

type Closing = Parameters<RecordAttemptDeps["closeAttempts"]>[0][number];
type Outcome = [outcomeClass: string, errorClass: string | null, statusCode: number | null];
type PastAnswer = Awaited<ReturnType<RecordAttemptDeps["listRecentAnswers"]>>[number];

const ENDED_AT = attemptReport().respondedAt;
const MINUTE_MS = 60_000;
const answered = (status: number) => ({ kind: "response", status, bodyComplete: true }) as const;

/** What a report comes to, with this history (newest first) in the ledger. */
async function record(over: Partial<AttemptReport>, history: PastAnswer[] = []) {
  const closings: Closing[] = [];
  const rings: object[] = [];
  const historyReads: number[] = [];
  const lines: AttemptLine[] = [];
  const deps: RecordAttemptDeps = {
    random: () => 0.5,
    closeAttempts: async (batch) => void closings.push(...batch),
    listRecentAnswers: async (_ref, beforeAttempt, limit) => {
      historyReads.push(beforeAttempt);
      return history.slice(0, limit);
    },
    ringLater: (calls, delayMs) => void rings.push({ calls, delayMs }),
    wakeLane: (lane) => void rings.push({ lane: lane.endpointId }),
    logAttempt: (line) => void lines.push(line),
  };
  await recordAttempt(deps, attemptReport(over));
  expect(closings).toHaveLength(1);
  return { closing: closings[0]!, rings, historyReads, lines };
}

const past = (over: Partial<PastAnswer> = {}): PastAnswer => {
  return { requestedAt: 0, statusCode: 404, errorClass: "http_4xx", responseBodySha256: "aa", ...over };
};
const ours = (errorClass: "internal" | "abandoned", requestedAt = 0) =>
  past({ requestedAt, statusCode: null, errorClass, responseBodySha256: null });

describe("each outcome", () => {
  const dead = (finalOutcome: string) => ({ status: "dead_letter", finalOutcome });
  const retry = (afterMs: number, failureCount: number, relayFaultCount: number) => {
    return { status: "pending", nextAttemptAt: ENDED_AT + afterMs, failureCount, relayFaultCount };
  };
  test.each<[string, AttemptReport["wire"], Outcome, object]>([
    ["200", answered(200), ["success", null, 200], { status: "succeeded", finalOutcome: "delivered" }],
    ["301", answered(301), ["transient", "http_3xx", 301], retry(30_000, 2, 0)],
    ["404", answered(404), ["transient", "http_4xx", 404], retry(30_000, 2, 0)],
    ["500", answered(500), ["transient", "http_5xx", 500], retry(30_000, 2, 0)],
    ["422", answered(422), ["rejected", "http_4xx", 422], dead("rejected")],
    ["410", answered(410), ["rejected", "gone", 410], dead("gone")],
    ["530", answered(530), ["unreachable", "dns", 530], retry(30_000, 2, 0)],
    [
      "a 200 cut off",
      { kind: "response", status: 200, bodyComplete: false },
      ["unreachable", "reset", 200],
      retry(30_000, 2, 0),
    ],
    ["a timeout", { kind: "timeout", status: null }, ["unreachable", "timeout", null], retry(30_000, 2, 0)],
    ["a throw", { kind: "thrown", message: "ECONNREFUSED" }, ["unreachable", "connect", null], retry(30_000, 2, 0)],
    // Ours: the failure count stays, the run of faults grows.
    ["an internal fault", { kind: "internal" }, ["unreachable", "internal", null], retry(1_000, 1, 1)],
    ["a lease that ran out", { kind: "abandoned" }, ["unreachable", "abandoned", null], retry(0, 1, 1)],
  ])("%s writes its closing", async (_name, wire, [outcomeClass, errorClass, statusCode], delivery) => {
    const { closing } = await record({ wire, attemptNumber: 2, failureCount: 1 });
    expect(closing.attempt).toMatchObject({ outcomeClass, errorClass, statusCode });
    expect(closing.delivery).toEqual(delivery);
    expect(closing.disable).toEqual(statusCode === 410 ? { url: attemptReport().endpointUrl, reason: "gone" } : null);
  });

  test("the last attempt of the policy is a dead letter, and faults of ours do not bring it nearer", async () => {
    const last = { attemptNumber: 40, failureCount: 9 };
    expect((await record(last)).closing.delivery).toEqual(dead("exhausted"));
    const fault = await record({ ...last, wire: { kind: "internal" }, relayFaultCount: 30 });
    expect(fault.closing.delivery).toEqual(retry(60_000, 9, 31));
  });

  test("the closing names the attempt and its claim, and keeps all that was reported", async () => {
    const { closing } = await record({ replayNo: 3, attemptNumber: 2, token: "token-2" });
    const { tenantId, eventId, endpointId } = attemptReport();
    expect(closing).toMatchObject({ tenantId, eventId, endpointId, replayNo: 3, attemptNumber: 2, token: "token-2" });
    expect(closing.attempt).toMatchObject({
      respondedAt: ENDED_AT,
      latencyMs: 250,
      responseBodySha256: "aa",
      responseHeadersJson: "{}",
      partnerRequestId: "partner-1",
    });
  });

  test("no latency is negative, though a clock was set back", async () => {
    expect((await record({ respondedAt: attemptReport().requestedAt - 5 })).closing.attempt.latencyMs).toBe(0);
  });
});

describe("the clock of the endpoint", () => {
  const { endpointUrl: url, requestedAt } = attemptReport();
  test.each<[string, Partial<AttemptReport>, "success" | "failure" | "first_failure" | null]>([
    ["200", { wire: answered(200) }, "success"],
    ["a first 503, which is tried again", { wire: answered(503) }, "first_failure"],
    ["a second 503", { wire: answered(503), failureCount: 1 }, "failure"],
    ["a first 503, which is not", { wire: answered(503), policy: { ...POLICY, max_attempts: 1 } }, "failure"],
    ["410", { wire: answered(410) }, "failure"],
    ["a fault of ours", { wire: { kind: "internal" } }, null],
    ["a lease that ran out", { wire: { kind: "abandoned" } }, null],
    ["a test send", { wire: answered(503), isLast: true }, null],
  ])("is told of %s", async (_name, over, mark) => {
    expect((await record(over)).closing.clock).toEqual(mark && { mark, url, requestedAt, mayTell: false });
  });

  test.each<[string, Partial<AttemptReport>, string | null]>([
    ["has run out", { disablesAt: requestedAt }, "failing"],
    ["runs out a millisecond later", { disablesAt: requestedAt + 1 }, null],
    ["does not run", { disablesAt: null }, null],
    ["is not known to the report", {}, null],
    ["has run out, and this is a success", { disablesAt: 1, wire: answered(200) }, null],
    ["has run out, and this is a test", { disablesAt: 1, isLast: true }, null],
    ["has run out, and this is a fault of ours", { disablesAt: 1, wire: { kind: "internal" } }, null],
    ["has run out, and the answer is 410", { disablesAt: 1, wire: answered(410) }, "gone"],
  ])("that %s", async (_name, over, reason) => {
    expect((await record(over)).closing.disable).toEqual(reason && { url, reason });
  });
});

test.each<[string, Partial<AttemptReport>, boolean]>([
  ["has failed for an hour", { failingSince: attemptReport().requestedAt - 3_600_000 }, true],
  ["has failed for less", { failingSince: attemptReport().requestedAt - 3_599_999 }, false],
  ["does not fail", { failingSince: null }, false],
  ["is disabled by this", { failingSince: 1, wire: answered(410) }, false],
])("an endpoint that %s", async (_name, over, mayTell) => {
  expect((await record({ wire: answered(503), ...over })).closing.clock).toMatchObject({ mayTell });
});

describe("the same answer running", () => {
  const sixth = { wire: answered(404), attemptNumber: 20, failureCount: 5 };
  const sameError = { status: "dead_letter", finalOutcome: "same_error" };

  test("ends the delivery as rejected at the limit", async () => {
    const { closing, historyReads, rings } = await record(sixth, Array.from({ length: 5 }, past.bind(null, {})));
    expect(closing.delivery).toEqual(sameError);
    expect(closing.attempt.outcomeClass).toBe("rejected");
    expect(historyReads).toEqual([20]);
    expect(rings).toEqual([]);
  });

  test("is counted over the newest answers with this status and body, passing over faults of ours", async () => {
    const entry = fc.oneof(
      { weight: 8, arbitrary: fc.constant(past()) },
      { weight: 2, arbitrary: fc.constantFrom(ours("internal"), ours("abandoned")) },
      {
        weight: 1,
        arbitrary: fc.constantFrom(
          past({ statusCode: 403 }),
          past({ responseBodySha256: "bb" }),
          past({ statusCode: null }),
        ),
      },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(entry, { maxLength: 12 }), async (history) => {
        const answers = history.filter(({ errorClass }) => errorClass === "http_4xx");
        const other = answers.findIndex((answer) => answer.statusCode !== 404 || answer.responseBodySha256 !== "aa");
        const running = 1 + (other === -1 ? answers.length : other);
        const { closing } = await record(sixth, history);
        expect(closing.delivery.status).toBe(running >= POLICY.same_error_limit ? "dead_letter" : "pending");
      }),
      { seed: 20_283, numRuns: 300 },
    );
  });

  test("costs no read before it could be long enough, or for a class the policy does not list", async () => {
    expect((await record({ ...sixth, failureCount: 4 })).historyReads).toEqual([]);
    expect((await record({ ...sixth, wire: answered(500) })).historyReads).toEqual([]);
    expect((await record({ ...sixth, wire: answered(200) })).historyReads).toEqual([]);
  });
});

describe("attempts abandoned in a row", () => {
  const fifth = { wire: { kind: "abandoned" }, attemptNumber: 5, relayFaultCount: 4 } as const;
  const begun = (minutesAgo: number) => ours("abandoned", ENDED_AT - minutesAgo * MINUTE_MS);
  const run = [begun(2), begun(4), begun(6), begun(10)];

  test("end the delivery when they are five and began ten minutes ago", async () => {
    const { closing } = await record(fifth, run);
    expect(closing.delivery).toEqual({ status: "dead_letter", finalOutcome: "abandoned" });
    expect(closing.attempt.outcomeClass).toBe("unreachable");
  });

  test.each<[string, PastAnswer[], number]>([
    ["over less than ten minutes", [begun(2), begun(4), begun(6), begun(9.999)], 5],
    ["over less than ten minutes, an older one before an answer", [...run.slice(0, 3), begun(9), past(), begun(20)], 5],
    ["four, however long ago they began", [begun(20), begun(40), begun(60)], 4],
    ["interrupted by an answer", [begun(2), past(), begun(6), begun(10), begun(20)], 2],
    ["interrupted by another fault of ours", [begun(2), begun(3), ours("internal"), begun(10), begun(20)], 3],
  ])("do not end it when %s", async (_name, history, running) => {
    const { closing } = await record({ ...fifth, relayFaultCount: history.length }, history);
    const next = { status: "pending", nextAttemptAt: ENDED_AT, failureCount: 0, relayFaultCount: running };
    expect(closing.delivery).toEqual(next);
  });

  test("the first costs no read", async () => {
    expect((await record({ ...fifth, relayFaultCount: 0 })).historyReads).toEqual([]);
  });
});

describe("the doorbell", () => {
  test.each([
    [0, true],
    [59.999, true],
    [60, true],
    [60.001, false],
    [3_600, false],
  ])("for a retry after %d s rings by message: %s", async (delaySeconds, rings) => {
    const policy = { ...POLICY, delays_seconds: [delaySeconds] };
    const deliveryId = "dlv_01k7xq3v5h8m2n4p6r8t0v2w4y0123456789abcdef2";
    const calls = [{ tenantId: "ten_1", deliveryId, attemptNumber: 4 }];
    const recorded = await record({ policy, replayNo: 2, attemptNumber: 3, failureCount: 2 });
    expect(recorded.rings).toEqual(rings ? [{ calls, delayMs: delaySeconds * 1000 }] : []);
  });

  test("wakes its lane instead, whatever came of it", async () => {
    for (const status of [200, 410, 500]) {
      const { rings } = await record({ wire: answered(status), lane: { generation: 3 } });
      expect(rings).toEqual([{ lane: attemptReport().endpointId }]);
    }
  });

  test("does not ring for a delivery that ended", async () => {
    for (const status of [200, 410, 422]) expect((await record({ wire: answered(status) })).rings).toEqual([]);
  });

  test("neither rings nor logs when the ledger refused the closing, and the refusal is the caller's", async () => {
    const rings: unknown[] = [];
    const deps: RecordAttemptDeps = {
      random: () => 0.5,
      closeAttempts: () => Promise.reject(new Error("away")),
      listRecentAnswers: async () => [],
      ringLater: (calls) => void rings.push(calls),
      wakeLane: (lane) => void rings.push(lane),
      logAttempt: (line) => void rings.push(line),
    };
    await expect(recordAttempt(deps, attemptReport())).rejects.toThrow("away");
    expect(rings).toEqual([]);
  });
});

describe("the log", () => {
  test("has one line an attempt: whose it is, how it ended and what comes next", async () => {
    const report = attemptReport();
    const ids = {
      tenant_id: report.tenantId,
      delivery_id: deliveryId(report),
      event_id: report.eventId,
      endpoint_id: report.endpointId,
      attempt_number: report.attemptNumber,
    };
    const latency_ms = report.respondedAt - report.requestedAt;
    const none = { final_outcome: null, retry_in_ms: null };
    expect((await record({ wire: answered(204) })).lines).toEqual([
      {
        ...ids,
        outcome_class: "success",
        error_class: null,
        status_code: 204,
        latency_ms,
        lag_ms: report.requestedAt - report.scheduledAt,
        next: "succeeded",
        ...none,
        final_outcome: "delivered",
      },
    ]);
    expect((await record({ wire: answered(422) })).lines).toEqual([
      {
        ...ids,
        outcome_class: "rejected",
        error_class: "http_4xx",
        status_code: 422,
        latency_ms,
        lag_ms: report.requestedAt - report.scheduledAt,
        next: "dead_letter",
        ...none,
        final_outcome: "rejected",
      },
    ]);
    const [retry] = (await record({ wire: answered(503) })).lines;
    expect(retry).toMatchObject({
      outcome_class: "transient",
      error_class: "http_5xx",
      next: "retry",
      final_outcome: null,
    });
    expect(retry!.retry_in_ms).toBeGreaterThan(0);
    // The wait for a retry is the policy's, and a test waits for nothing.
    expect((await record({ wire: answered(503), attemptNumber: 2 })).lines).toMatchObject([{ lag_ms: null }]);
    expect((await record({ wire: answered(503), isLast: true })).lines).toMatchObject([{ lag_ms: null }]);
    // How long a lease was says nothing of the receiver.
    expect((await record({ wire: { kind: "abandoned" } })).lines).toMatchObject([
      { error_class: "abandoned", latency_ms: null, lag_ms: null },
    ]);
  });

  test("holds nothing that anybody sent, and no address", async () => {
    const { lines } = await record({
      endpointUrl: "https://consumer.example/hook?token=s3cret",
      partnerRequestId: "s3cret",
      responseHeadersJson: '{"x":"s3cret"}',
    });
    expect(JSON.stringify(lines)).not.toMatch(/s3cret|consumer/);
  });
});
