import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { createDeclared, describeTable, migrate, migrations, tablesOf } from "./support/schema.ts";

const migrated = new DatabaseSync(":memory:");
migrate(migrated);
const declared = await createDeclared();

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
  expect(new Set(migrations.map(({ file }) => file.slice(0, 4))).size).toBe(migrations.length);
  for (const { file, sql } of migrations) {
    expect(file).toMatch(/^\d{4}_[a-z0-9_]+\.sql$/);
    expect(sql).toMatch(/^-- \S/);
  }
});
