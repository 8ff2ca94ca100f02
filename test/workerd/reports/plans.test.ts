import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { shardsOf } from "../../../src/compose.ts";
import { createDeadLettersReport } from "../../../src/storage/ledger/reports/dead-letters.ts";
import { createDisabledReport } from "../../../src/storage/ledger/reports/disabled.ts";
import { createFailuresReport } from "../../../src/storage/ledger/reports/failures.ts";
import { createUndeliveredReport } from "../../../src/storage/ledger/reports/undelivered.ts";
import { planOf, WALKS } from "./plans.ts";

const db = shardsOf(env as Env)
  .values()
  .next().value!;

/** Each report by what it runs, and the searches that make it cheap. */
const REPORTS: [name: string, run: (db: D1Database) => Promise<unknown>, searches: string[]][] = [
  [
    "failures",
    (spy) => createFailuresReport(spy).countFailures("ten_0", 0, 1),
    [
      "SEARCH attempt USING INDEX attempt_failed (tenant_id=? AND requested_at>?)",
      "SEARCH delivery USING COVERING INDEX delivery_ended (tenant_id=? AND status=? AND terminal_at>?)",
    ],
  ],
  [
    "dead-letters",
    (spy) => createDeadLettersReport(spy).countDeadLetters("ten_0", 0, 1),
    ["SEARCH delivery USING COVERING INDEX delivery_ended (tenant_id=? AND status=? AND terminal_at>?)"],
  ],
  [
    "undelivered",
    (spy) => createUndeliveredReport(spy).listUndelivered("ten_0", 1),
    [
      "SEARCH delivery USING INDEX delivery_due (status=?)",
      "SEARCH endpoint USING INDEX endpoint_living (tenant_id=?)",
      "SEARCH d USING INDEX delivery_lane (endpoint_id=? AND lane_key>?)",
    ],
  ],
  [
    "disabled",
    (spy) => createDisabledReport(spy).listDisabled("ten_0", 0),
    [
      "SEARCH subscription USING INDEX subscription_disabled (tenant_id=? AND last_disabled_at>?)",
      "SEARCH endpoint USING INDEX endpoint_disabled (tenant_id=? AND last_disabled_at>?)",
    ],
  ],
];

test.for(REPORTS)("the report %s walks no table, and is one trip", async ([, run, searches]) => {
  const statements: string[] = [];
  const spy = {
    prepare(sql: string) {
      statements.push(sql);
      return db.prepare(sql);
    },
  } as unknown as D1Database;
  await run(spy);
  expect(statements).toHaveLength(1);
  const plan = await planOf(db, statements[0]!);
  expect(plan.filter((step) => WALKS.test(step))).toEqual([]);
  expect(plan).toEqual(expect.arrayContaining(searches));
});
