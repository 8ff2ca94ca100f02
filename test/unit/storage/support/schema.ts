import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { generateSQLiteDrizzleJson, generateSQLiteMigration } from "drizzle-kit/api";
import * as schema from "../../../../src/storage/schema.ts";

const folder = resolve(import.meta.dirname, "../../../../migrations");

/** The migrations by name, in the order in which they are applied. */
export const migrations = readdirSync(folder)
  .toSorted()
  .map((file) => ({ file, sql: readFileSync(join(folder, file), "utf8") }));

export function migrate(db: DatabaseSync, part = migrations): void {
  for (const { sql } of part) db.exec(sql);
}

/** A database as Drizzle's schema declares it. */
export async function createDeclared(): Promise<DatabaseSync> {
  const declared = new DatabaseSync(":memory:");
  const nothing = await generateSQLiteDrizzleJson({});
  for (const statement of await generateSQLiteMigration(nothing, await generateSQLiteDrizzleJson(schema))) {
    declared.exec(statement);
  }
  return declared;
}

export const tablesOf = (db: DatabaseSync) =>
  db
    .prepare("select name from sqlite_master where type = 'table' order by name")
    .all()
    .map(({ name }) => name as string);

/** A default as SQLite evaluates it, since it can be spelled in several ways. */
const valueOf = (db: DatabaseSync, sql: unknown) =>
  sql === null ? null : db.prepare(`select ${sql as string} as value`).get()!["value"];

export function describeTable(db: DatabaseSync, table: string) {
  const pragma = (name: string, of = table) => db.prepare(`pragma ${name}('${of}')`).all();
  return {
    columns: pragma("table_info").map((column) => ({
      name: column["name"],
      type: String(column["type"]).toLowerCase(),
      isNotNull: column["notnull"],
      primaryKey: column["pk"],
      default: valueOf(db, column["dflt_value"]),
    })),
    foreignKeys: pragma("foreign_key_list")
      .map(({ table: target, from, to, seq }) => `${seq}: ${from} → ${target}.${to}`)
      .toSorted(),
    indexes: pragma("index_list")
      .filter(({ origin }) => origin === "c")
      .map(({ name, unique, partial }) => ({
        name,
        unique,
        partial,
        columns: pragma("index_xinfo", name as string)
          .filter(({ key }) => key === 1)
          .map(({ name: column, desc }) => `${column}${desc ? " desc" : ""}`),
        where: whereOf(db, name as string),
      }))
      .toSorted((a, b) => String(a.name).localeCompare(String(b.name))),
  };
}

function whereOf(db: DatabaseSync, index: string): string | null {
  const { sql } = db.prepare("select sql from sqlite_master where name = ?").get(index)!;
  const where = /\bwhere\b([^]*)$/i.exec(sql as string)?.[1];
  return (
    where
      ?.replaceAll(/["`]|\w+\./g, "")
      .replaceAll(/\s+/g, " ")
      .trim() ?? null
  );
}
