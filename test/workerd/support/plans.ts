/** A database that notes each statement with what it read and how it was planned. */
export interface Noted {
  rowsRead: number;
  trips: number;
  /** Lines of the plans of all statements. */
  plan: string[];
}

export function notingDatabase(db: D1Database): { db: D1Database; noted: Noted } {
  const noted: Noted = { rowsRead: 0, trips: 0, plan: [] };

  async function run(statements: { sql: string; values: unknown[] }[]) {
    const prepared = statements.map(({ sql, values }) => db.prepare(sql).bind(...values));
    const results = await db.batch<any>(prepared);
    noted.trips++;
    for (const { meta } of results) noted.rowsRead += meta.rows_read;
    for (const { sql, values } of statements) noted.plan.push(...(await planOf(db, sql, values)));
    return results;
  }

  function prepare(sql: string, values: unknown[] = []) {
    return {
      statement: { sql, values },
      bind: (...bound: unknown[]) => prepare(sql, bound),
      all: async () => (await run([{ sql, values }]))[0],
      first: async () => (await run([{ sql, values }]))[0]!.results[0] ?? null,
    };
  }

  const noting = {
    prepare: (sql: string) => prepare(sql),
    batch: (statements: { statement: { sql: string; values: unknown[] } }[]) =>
      run(statements.map(({ statement }) => statement)),
  };
  return { db: noting as unknown as D1Database, noted };
}

/** Lines of the plans of all statements that `work` runs. */
export async function explain(real: D1Database, work: (db: D1Database) => Promise<unknown>): Promise<string[]> {
  const { db, noted } = notingDatabase(real);
  await work(db);
  return noted.plan;
}

export async function planOf(db: D1Database, sql: string, values: unknown[] = []): Promise<string[]> {
  const statement = db.prepare(`explain query plan ${sql}`).bind(...values);
  return (await statement.all<{ detail: string }>()).results.map(({ detail }) => detail);
}

/** Lines that walk a table which grows with events, or all that a tenant has in it; `event` is the statement's name for that. */
export function walksIn(plan: string[], event = "ev"): string[] {
  const table = `(delivery|attempt|event|a|d|${event})`;
  const walk = new RegExp(`^(SCAN ${table}\\b|SEARCH ${table} USING .*\\(tenant_id=\\?\\)$)`);
  return plan.filter((line) => walk.test(line));
}

/** Lines of plans that walk a table, or an index of it, from one end to the other. */
export function scansIn(plan: string[]): string[] {
  return plan.filter((line) => /^SCAN (delivery|attempt|event|subscription|source|endpoint)\b/.test(line));
}
