import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { MONITORS } from "./monitors.ts";

/** A statement with its parameters. `asArrays` is what `raw()` asks for. */
export interface Query {
  sql: string;
  params: unknown[];
  asArrays?: boolean;
}

export interface Answer {
  results: unknown[];
  success: true;
  meta: { changes: number };
}

const FOLDER = resolve(import.meta.dirname, "../../../migrations");

/** SQLite in memory with all migrations, which answers as D1 does. One for all histories of a process, emptied between them. */
export class Sqlite {
  readonly #db = new DatabaseSync(":memory:");
  readonly #prepared = new Map<string, { statement: StatementSync; changes: boolean }>();
  readonly #tables: string[];
  /** Statements so far that may have changed something. */
  writes = 0;

  constructor() {
    for (const file of readdirSync(FOLDER).toSorted()) this.#db.exec(readFileSync(join(FOLDER, file), "utf8"));
    this.#db.exec(MONITORS);
    this.#tables = ["violation", "settings", "owed_block", ...this.#childrenFirst()];
  }

  clear(): void {
    this.#db.exec("begin; insert into quiet values (1)");
    for (const table of this.#tables) this.#prepare({ sql: `delete from ${table}`, params: [] }).statement.run();
    this.#db.exec("delete from quiet; commit");
  }

  #childrenFirst(): string[] {
    const ordered: string[] = [];
    const visit = (table: string) => {
      if (ordered.includes(table)) return;
      const parents = this.rows(`select distinct "table" as name from pragma_foreign_key_list('${table}')`);
      for (const { name } of parents) if (name !== table) visit(name as string);
      ordered.push(table);
    };
    for (const { name } of this.rows("select name from sqlite_schema where type = 'table'")) visit(name as string);
    return ordered.toReversed();
  }

  /** One transaction, as a batch of D1 is. */
  execute(queries: Query[]): Answer[] {
    if (queries.length === 1) return [this.#execute(queries[0]!)];
    this.#db.exec("begin");
    try {
      const answers = queries.map((query) => this.#execute(query));
      this.#db.exec("commit");
      return answers;
    } catch (error) {
      this.#db.exec("rollback");
      throw error;
    }
  }

  /** For a look from outside. */
  rows(sql: string, ...params: unknown[]): Record<string, any>[] {
    return this.#prepare({ sql, params: [] }).statement.all(...params) as Record<string, any>[];
  }

  #execute(query: Query): Answer {
    const { statement, changes } = this.#prepare(query);
    const results = statement.all(...query.params);
    for (const row of results) blobsToArrays(row);
    if (changes) this.writes++;
    const meta = { changes: changes ? (this.rows("select changes() as n")[0]!["n"] as number) : 0 };
    return { results, success: true, meta };
  }

  #prepare({ sql, asArrays = false }: Query) {
    const key = asArrays ? `arrays ${sql}` : sql;
    let prepared = this.#prepared.get(key);
    if (!prepared) {
      const statement = this.#db.prepare(sql);
      statement.setReturnArrays(asArrays);
      prepared = { statement, changes: !/^\s*(select|with)/i.test(sql) };
      this.#prepared.set(key, prepared);
    }
    return prepared;
  }
}

/** A blob comes out of D1 as an array of numbers. */
function blobsToArrays(row: Record<string, unknown>): void {
  for (const name in row) {
    const value = row[name];
    if (value instanceof Uint8Array) row[name] = [...value];
  }
}
