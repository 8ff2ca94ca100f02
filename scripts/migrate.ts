import { readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadWrangler } from "./load-tools.ts";

/** The part of a D1 binding that migrating needs. */
interface Database {
  prepare(sql: string): { bind(...values: unknown[]): Statement } & Statement;
  batch(statements: Statement[]): Promise<unknown>;
}
interface Statement {
  all(): Promise<{ results: unknown[] }>;
}

/**
 * Applies what is missing of `folder` in order of name, each file and its mark in one transaction. The marks are those
 * of `wrangler d1 migrations apply`, so either tool can go on where the other stopped.
 */
export async function applyMigrations(database: Database, folder: string): Promise<void> {
  await database
    .prepare(
      `create table if not exists d1_migrations(
        id integer primary key autoincrement, name text unique, applied_at timestamp default current_timestamp not null)`,
    )
    .all();
  const { results } = await database.prepare("select name from d1_migrations").all();
  const applied = new Set(results.map((row) => (row as { name: string }).name));
  const { unstable_splitSqlQuery } = loadWrangler();
  for (const name of listMigrations(folder).filter((file) => !applied.has(file))) {
    const statements = unstable_splitSqlQuery(readFileSync(join(folder, name), "utf8"));
    await database.batch([
      ...statements.map((sql) => database.prepare(sql)),
      database.prepare("insert into d1_migrations(name) values (?)").bind(name),
    ]);
  }
}

const listMigrations = (folder: string) =>
  readdirSync(folder)
    .filter((name) => name.endsWith(".sql"))
    .toSorted();

/** What a local relay remembers beside its databases: that these have all of `folder`. */
export function createMigrationMark(stateDir: string, databases: string[], folder: string) {
  const file = join(stateDir, "migrated.json");
  const text = JSON.stringify({ databases, migrations: listMigrations(folder) });
  return {
    isSet(): boolean {
      try {
        return readFileSync(file, "utf8") === text;
      } catch {
        return false;
      }
    },
    set(): void {
      writeFileSync(`${file}.new`, text);
      renameSync(`${file}.new`, file);
    },
  };
}
