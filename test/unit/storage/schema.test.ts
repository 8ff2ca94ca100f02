import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { generateSQLiteDrizzleJson, generateSQLiteMigration } from "drizzle-kit/api";
import { describe, expect, test } from "vitest";
import * as schema from "../../../src/storage/schema.ts";

const folder = resolve(import.meta.dirname, "../../../migrations");
const files = readdirSync(folder).toSorted();

const migrated = new DatabaseSync(":memory:");
for (const file of files) migrated.exec(readFileSync(join(folder, file), "utf8"));

const declared = new DatabaseSync(":memory:");
const nothing = await generateSQLiteDrizzleJson({});
for (const statement of await generateSQLiteMigration(nothing, await generateSQLiteDrizzleJson(schema))) {
  declared.exec(statement);
}

const tablesOf = (db: DatabaseSync) =>
  db
    .prepare("select name from sqlite_master where type = 'table' order by name")
    .all()
    .map(({ name }) => name as string);

/** A default as SQLite evaluates it, since it can be spelled in several ways. */
const valueOf = (db: DatabaseSync, sql: unknown) =>
  sql === null ? null : db.prepare(`select ${sql as string} as value`).get()!["value"];

function describeTable(db: DatabaseSync, table: string) {
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

describe("the schema that queries are typed by is the one that the migrations make", () => {
  test("the same tables", () => expect(tablesOf(declared)).toEqual(tablesOf(migrated)));

  test.each(tablesOf(migrated))("%s: columns, types, nullability, keys and indexes", (table) => {
    expect(describeTable(declared, table)).toEqual(describeTable(migrated, table));
  });
});

test("every table is stored by its primary key alone", () => {
  const withRowid = migrated
    .prepare("select name from pragma_table_list where schema = 'main' and type = 'table' and wr = 0")
    .all()
    .map(({ name }) => name);
  expect(withRowid.filter((name) => name !== "sqlite_schema")).toEqual([]);
});

test("every migration has a number of its own, a name, and opens with why", () => {
  expect(new Set(files.map((file) => file.slice(0, 4))).size).toBe(files.length);
  for (const file of files) {
    expect(file).toMatch(/^\d{4}_[a-z0-9_]+\.sql$/);
    expect(readFileSync(join(folder, file), "utf8")).toMatch(/^-- \S/);
  }
});
