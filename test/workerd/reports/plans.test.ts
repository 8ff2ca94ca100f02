import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { shardsOf } from "../../../src/compose.ts";
import { createDeadLettersReport } from "../../../src/storage/ledger/reports/dead-letters.ts";
import { createDisabledReport } from "../../../src/storage/ledger/reports/disabled.ts";
import { createFailuresReport } from "../../../src/storage/ledger/reports/failures.ts";
import { createUndeliveredReport } from "../../../src/storage/ledger/reports/undelivered.ts";
import { notingDatabase, walksIn } from "../support/plans.ts";

const real = shardsOf(env as Env)
  .values()
  .next().value!;

/** Each report by what it runs, and the searches that make it cheap. */
const REPORTS: [name: string, run: (db: D1Database) => Promise<unknown>, searches: string[]][] = [
  [
    "failures",
    (db) => createFailuresReport(db).countFailures("ten_0", 0, 1),
    [
      "SEARCH attempt USING INDEX attempt_failed (tenant_id=? AND requested_at>?)",
      "SEARCH delivery USING COVERING INDEX delivery_ended (tenant_id=? AND status=? AND terminal_at>?)",
    ],
  ],
  [
    "dead-letters",
    (db) => createDeadLettersReport(db).countDeadLetters("ten_0", 0, 1),
    ["SEARCH delivery USING COVERING INDEX delivery_ended (tenant_id=? AND status=? AND terminal_at>?)"],
  ],
  [
    "undelivered",
    (db) => createUndeliveredReport(db).listUndelivered("ten_0", 1),
    [
      "SEARCH delivery USING INDEX delivery_due (status=?)",
      "SEARCH endpoint USING INDEX endpoint_living (tenant_id=?)",
      "SEARCH d USING INDEX delivery_lane (endpoint_id=? AND lane_key>?)",
    ],
  ],
  [
    "disabled",
    (db) => createDisabledReport(db).listDisabled("ten_0", 0),
    [
      "SEARCH subscription USING INDEX subscription_disabled (tenant_id=? AND last_disabled_at>?)",
      "SEARCH endpoint USING INDEX endpoint_disabled (tenant_id=? AND last_disabled_at>?)",
    ],
  ],
];

test.for(REPORTS)("the report %s walks no table, and is one trip", async ([, run, searches]) => {
  const { db, noted } = notingDatabase(real);
  await run(db);
  expect(noted.trips).toBe(1);
  expect(walksIn(noted.plan)).toEqual([]);
  expect(noted.plan).toEqual(expect.arrayContaining(searches));
});
