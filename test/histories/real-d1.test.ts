import { afterAll, beforeAll, expect, test } from "vitest";
import { outside } from "./support/globals.ts";
import { runHistory } from "./support/history.ts";
import type { Answer, Query, Sqlite } from "./support/sqlite.ts";

const SEEDS = [3, 4];

interface RealD1 {
  execute(queries: Query[]): Promise<{ answers: { results: unknown[]; changes: number }[] } | { error: string }>;
  stop(): Promise<void>;
}

let d1: RealD1;

beforeAll(async () => {
  // Not by its name: the types behind it would take the place of the runtime's (tsconfig.node.json has it).
  const file = "./support/real-d1.ts";
  const { startD1 } = (await import(file)) as { startD1(migrations: string): Promise<RealD1> };
  d1 = await startD1("./migrations");
});

afterAll(() => d1.stop());

/** What both databases say to the same statements. */
async function executeBoth(db: Sqlite, queries: Query[]): Promise<Answer[]> {
  let answers: Answer[] = [];
  let error: unknown = null;
  try {
    answers = db.execute(queries);
  } catch (thrown) {
    error = thrown;
  }
  const real = await outside(() => d1.execute(queries));
  if (error !== null) {
    expect(real).toEqual({ error: expect.stringContaining((error as Error).message) });
    throw error;
  }
  const said = answers.map(({ results, meta: { changes } }, n) => ({
    results: inSomeOrder(queries[n]!, results),
    // Where rows come back nobody asks how many have changed.
    changes: results.length > 0 || /^\s*(select|with)/i.test(queries[n]!.sql) ? expect.any(Number) : changes,
  }));
  if ("answers" in real)
    for (const [n, answer] of real.answers.entries()) answer.results = inSomeOrder(queries[n]!, answer.results);
  expect(real, queries.map(({ sql }) => sql).join("\n")).toEqual({ answers: said });
  return answers;
}

/** Rows of a statement that asks for no order. */
function inSomeOrder({ sql }: Query, rows: unknown[]): unknown[] {
  const plain = rows.map((row) => JSON.stringify(row));
  return /order by/i.test(sql) ? plain : plain.toSorted();
}

test.each(SEEDS)("in history %i, D1 answers every statement as SQLite does in histories", async (seed) => {
  let statements = 0;
  const over = await runHistory(seed, {
    ledgerOf: (db) => ({
      execute: (queries) => {
        statements += queries.length;
        return executeBoth(db, queries);
      },
    }),
  });
  const alone = await runHistory(seed);
  expect(over.violations).toEqual([]);
  expect(over.digest).toBe(alone.digest);
  expect(statements).toBeGreaterThan(100);
});
