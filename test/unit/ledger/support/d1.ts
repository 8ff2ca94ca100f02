import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";

const MIGRATIONS = resolve(import.meta.dirname, "../../../../migrations");

/** A database in memory with all migrations, and a binding over it that answers as D1 does. */
export function createD1(): { sqlite: DatabaseSync; db: D1Database; statements: string[] } {
  const sqlite = new DatabaseSync(":memory:");
  for (const file of readdirSync(MIGRATIONS).toSorted()) sqlite.exec(readFileSync(join(MIGRATIONS, file), "utf8"));
  sqlite.exec("pragma foreign_keys = off");
  const statements: string[] = [];

  function prepare(sql: string, values: any[] = []) {
    const all = async () => {
      statements.push(sql);
      return { results: prepared(sqlite, sql).all(...values), success: true, meta: {} };
    };
    return {
      bind: (...bound: unknown[]) => prepare(sql, bound),
      all,
      run: all,
      first: async () => (await all()).results[0] ?? null,
    };
  }

  const db = {
    prepare: (sql: string) => prepare(sql),
    async batch(batched: { all(): Promise<unknown> }[]) {
      const results = [];
      for (const statement of batched) results.push(await statement.all());
      return results;
    },
  };
  return { sqlite, db: db as unknown as D1Database, statements };
}

/** Inserts rows of a table; columns that are left out are what they are by default. */
export function insertRows(sqlite: DatabaseSync, table: string, rows: Record<string, any>[]): void {
  for (const row of rows) {
    const columns = Object.keys(row);
    const marks = columns.map(() => "?").join(", ");
    prepared(sqlite, `insert into ${table} (${columns.join(", ")}) values (${marks})`).run(...Object.values(row));
  }
}

const statementsOf = new WeakMap<DatabaseSync, Map<string, StatementSync>>();

function prepared(sqlite: DatabaseSync, sql: string): StatementSync {
  const known = statementsOf.get(sqlite) ?? new Map<string, StatementSync>();
  statementsOf.set(sqlite, known);
  const statement = known.get(sql) ?? sqlite.prepare(sql);
  known.set(sql, statement);
  return statement;
}
