import { expect, onTestFinished, test } from "vitest";
import text from "../../../docs/questions.sql?raw";
import { deliveryId } from "../../../src/core/ids.ts";
import { createDeadLettersReport } from "../../../src/storage/ledger/reports/dead-letters.ts";
import { createFailuresReport } from "../../../src/storage/ledger/reports/failures.ts";
import { fillIn, parseQuestions } from "../../support/questions.ts";
import { createRandom } from "../../support/random.ts";
import { createScene, empty } from "../support/scene.ts";
import { HOUR_MS, MINUTE_MS, record, type Recorded } from "./support.ts";

const OURS = ["internal", "abandoned"];

interface Group {
  deliveries: Map<string, boolean>;
  attempts: number;
  times: [at: number, id: string][];
}

/** What the contract says that the failures report counts, said once more in other words. */
function countByHand(rows: (Recorded & { id: string })[], from: number, now: number) {
  const groups = new Map<string, Group>();
  const add = (row: { id: string }, error: string | null, outcome: string | null, at: number, isEnd: boolean) => {
    const key = `${error} ${outcome}`;
    const group: Group = groups.get(key) ?? { deliveries: new Map(), attempts: 0, times: [] };
    groups.set(key, group);
    group.deliveries.set(row.id, isEnd || group.deliveries.get(row.id) === true);
    group.attempts += isEnd ? 0 : 1;
    group.times.push([at, row.id]);
  };
  for (const row of rows.filter(({ expiresAt }) => expiresAt! > now)) {
    for (const { at, errorClass, outcomeClass } of row.attempts!) {
      const hasFailed = outcomeClass !== null && outcomeClass !== "success";
      if (hasFailed && at >= from && !OURS.includes(errorClass!)) add(row, errorClass!, null, at, false);
    }
    if (!["failed", "dead_letter", "expired"].includes(row.status!) || row.terminalAt! < from) continue;
    const error = row.lastErrorClass && !OURS.includes(row.lastErrorClass) ? row.lastErrorClass : null;
    add(row, error, error === null ? row.finalOutcome! : null, row.terminalAt!, true);
  }
  return [...groups]
    .map(([key, { deliveries, attempts, times }]) => ({
      key,
      deliveries: deliveries.size,
      attempts,
      ended: [...deliveries.values()].filter(Boolean).length,
      first: Math.min(...times.map(([at]) => at)),
      last: Math.max(...times.map(([at]) => at)),
    }))
    .toSorted((a, b) => (a.key < b.key ? -1 : 1));
}

test("whatever a ledger holds, reports and SQL count what a look at each delivery counts", async () => {
  const random = createRandom(8);
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)]!;
  const scene = await createScene();
  onTestFinished(() => empty(scene));
  const now = Date.now();
  // Whole minutes, so that a window of 60.5 has no row near its edge.
  const sometime = () => now - Math.floor(random() * 150) * MINUTE_MS;
  const rows: Recorded[] = Array.from({ length: 400 }, () => {
    const attempts = Array.from({ length: Math.floor(random() * 5) }, () => {
      const errorClass = pick(["http_5xx", "http_4xx", "timeout", "internal", "abandoned", null]);
      return {
        at: sometime(),
        errorClass,
        outcomeClass: errorClass === null ? pick(["success", null]) : "unreachable",
      };
    });
    const status = pick(["pending", "succeeded", "failed", "dead_letter", "dead_letter", "expired", "cancelled"]);
    return {
      status,
      attempts,
      createdAt: now - 3 * HOUR_MS,
      terminalAt: sometime(),
      finalOutcome: pick(["exhausted", "rejected", "expired", "abandoned"]),
      lastErrorClass: pick(["http_5xx", "timeout", "internal", "abandoned", "blocked_destination", null]),
      replayedAs: pick([null, null, 1]),
      expiresAt: pick([now - 1, now + HOUR_MS, now + HOUR_MS, now + HOUR_MS]),
    };
  });
  const ids = await record(scene, rows);
  const known = rows.map((row, k) => ({ ...row, id: ids[k]! }));

  for (const minutes of [30.5, 60.5, 200]) {
    const from = now - minutes * MINUTE_MS;
    const { data } = await createFailuresReport(scene.db).countFailures(scene.tenant.id, from, now);
    const counted = data.map((row) => ({
      key: `${row.errorClass} ${row.finalOutcome}`,
      deliveries: row.deliveries,
      attempts: row.attempts,
      ended: row.ended,
      first: row.firstAt,
      last: row.lastAt,
    }));
    expect(counted.toSorted((a, b) => (a.key < b.key ? -1 : 1))).toEqual(countByHand(known, from, now));
    const order = data.map(({ deliveries, attempts }) => deliveries * 10_000 + attempts);
    expect(order).toEqual(order.toSorted((a, b) => b - a));
  }

  const dead = known.filter((row) => row.status === "dead_letter" && row.replayedAs === null && row.expiresAt! > now);
  const { data } = await createDeadLettersReport(scene.db).countDeadLetters(scene.tenant.id, null, now);
  for (const { finalOutcome, deliveries, oldestAt, newestAt, example } of data) {
    const same = dead.filter((row) => row.finalOutcome === finalOutcome);
    const times = same.map(({ terminalAt }) => terminalAt!);
    expect([deliveries, oldestAt, newestAt]).toEqual([same.length, Math.min(...times), Math.max(...times)]);
    expect(same.find(({ id }) => id === deliveryId(example))!.terminalAt).toBe(newestAt);
  }
  expect(data.reduce((sum, { deliveries }) => sum + deliveries, 0)).toBe(dead.length);

  const asked = { 1: "/v1/reports/failures?window=3630s", 5: "/v1/reports/dead-letters" };
  for (const question of parseQuestions(text).filter(({ number }) => number in asked)) {
    const sql = fillIn(question, { ten: scene.tenant.id }).replace("- 3600000", "- 3630000");
    const { results } = await scene.db.prepare(sql).all();
    expect(results).toEqual((await scene.tenant.api.get(asked[question.number as 1])).body.data);
    expect(results.length).toBeGreaterThan(2);
  }
});
