import { expect, test } from "vitest";
import { runHistory, type Run } from "./support/history.ts";
import { describeFailure, shrink } from "./support/shrink.ts";
import type { Sqlite } from "./support/sqlite.ts";
import type { Ledger } from "./support/stores.ts";

/** A ledger that does one thing less than its statements say. */
const without =
  (part: RegExp, instead: string) =>
  (db: Sqlite): Ledger => ({
    execute: (queries) => db.execute(queries.map((query) => ({ ...query, sql: query.sql.replace(part, instead) }))),
  });

const FAULTS = {
  "a claim does not prove its head": without(/lane_position = \(\s+select min[^]+?lane_key is not null\)/, "true"),
  "a lane's claim is not taken up by its token": without(
    /\(token = \?5 or \((\s+status = 'pending' and lane_key is not null)/,
    "(?5 is null or ($1",
  ),
  "a change of mode turns the order round": without(/d\.created_at, d\.event_id, d\.replay_no\)/, "d.created_at desc)"),
  "a dead head does not stop its lane": without(/e\.on_exhausted = 'block' and e\.route = 'lane'/, "false"),
  "the replay of a blocked head stands behind others": without(
    /min\(coalesce\(\(select min\(x\.lane_position\)[^]+?-2199023255552\) - 1/,
    "900000000",
  ),
  "what is published at a disabled endpoint is not born failed for that": without(
    /when ep\.disabled_at is not null then 'endpoint_disabled'/,
    "when false then ''",
  ),
  "what fails after a change of mode stays before all that waits": without(
    /lane_position \+ 1099511627776/,
    "lane_position",
  ),
};
const ENOUGH = 120;

async function findFailure(ledgerOf: (db: Sqlite) => Ledger): Promise<Run | null> {
  for (let seed = 1; seed <= ENOUGH; seed++) {
    const run = await runHistory(seed, { ledgerOf });
    if (run.violations.length > 0) return run;
  }
  return null;
}

test.each(Object.entries(FAULTS))("where %s, a history says so", async (_, ledgerOf) => {
  expect((await findFailure(ledgerOf))?.violations[0]).toBeTypeOf("string");
});

test("a failure is shrunk to fewer steps, which fail in the same way each time they are run", async () => {
  const over = { ledgerOf: FAULTS["a claim does not prove its head"] };
  const failed = (await findFailure(over.ledgerOf))!;
  const shrunk = await shrink(failed, over);
  expect(shrunk.steps.length).toBeLessThan(failed.steps.length / 2);
  const again = await runHistory(failed.seed, { ...over, steps: shrunk.steps });
  expect(again.violations).toEqual(shrunk.violations);
  expect(again.digest).toBe(shrunk.digest);
  const numbers = shrunk.steps.map(({ n }) => n).join(",");
  expect(describeFailure(shrunk)).toContain(`HOOKLANE_SEED=${failed.seed} HOOKLANE_STEPS=${numbers} npx vitest run`);
});
