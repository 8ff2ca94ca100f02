import { expect, test } from "vitest";
import { keepReport, type KeepReportDeps } from "../../../src/app/deliver/keep-report.ts";
import { attemptReport, T0 } from "./support/report.ts";

/** A ledger and a queue that refuse until a moment of their own; the clock moves only while it sleeps. */
function scene(refusing: { ledgerForMs: number; queueForMs: number }) {
  let now = T0;
  const trace: (string | number)[] = [];
  const faults: string[] = [];
  const tries = { ledger: 0, queue: 0 };
  const deps: KeepReportDeps = {
    now: () => now,
    random: () => 0.5,
    sleep: async (ms) => {
      trace.push(ms);
      now += ms;
    },
    closeAttempts: async ([closing]) => {
      tries.ledger++;
      if (now < T0 + refusing.ledgerForMs) throw new Error("ledger away");
      trace.push(`recorded attempt ${closing!.attemptNumber}`);
    },
    queueReport: async (report) => {
      tries.queue++;
      if (now < T0 + refusing.queueForMs) throw new Error("queue away");
      trace.push(`queued ${JSON.stringify(report)}`);
    },
    listRecentAnswers: async () => [],
    ringLater: () => {},
    wakeLane: () => {},
    logAttempt: () => {},
    logFault: (what, error) => void faults.push(`${what}: ${String(error)}`),
  };
  return { deps, trace, faults, tries, elapsedMs: () => now - T0 };
}

test("the ledger takes a report first, and then the queue is not asked", async () => {
  const { deps, trace, faults, tries } = scene({ ledgerForMs: 0, queueForMs: 0 });
  await keepReport(deps, attemptReport({ attemptNumber: 4 }));
  expect(trace).toEqual(["recorded attempt 4"]);
  expect(tries.queue).toBe(0);
  expect(faults).toEqual([]);
});

test("what the ledger refuses goes to the queue at once and whole, and the refusal is logged", async () => {
  const { deps, trace, faults } = scene({ ledgerForMs: Infinity, queueForMs: 0 });
  await keepReport(deps, attemptReport());
  expect(trace).toEqual([`queued ${JSON.stringify(attemptReport())}`]);
  expect(faults).toEqual(["record attempt: Error: ledger away"]);
});

test("what both refuse is kept and tried again, the pauses doubling, until the ledger takes it", async () => {
  const { deps, trace, faults } = scene({ ledgerForMs: 1_000, queueForMs: Infinity });
  await keepReport(deps, attemptReport());
  expect(trace).toEqual([250, 500, 1_000, "recorded attempt 1"]);
  expect(faults).toHaveLength(6);
});

test("what both refuse is kept and tried again until the queue takes it", async () => {
  const { deps, trace } = scene({ ledgerForMs: Infinity, queueForMs: 700 });
  await keepReport(deps, attemptReport());
  expect(trace).toEqual([250, 500, `queued ${JSON.stringify(attemptReport())}`]);
});

test("while both are away it is given up within twenty seconds, without throwing", async () => {
  const { deps, trace, faults, tries, elapsedMs } = scene({ ledgerForMs: Infinity, queueForMs: Infinity });
  await keepReport(deps, attemptReport());
  expect(trace).toEqual([250, 500, 1_000, 2_000, 4_000, 8_000]);
  expect(tries).toEqual({ ledger: 7, queue: 7 });
  expect(faults).toHaveLength(14);
  expect(elapsedMs()).toBeLessThanOrEqual(20_000);
});
