import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createMigrationMark } from "../../../scripts/migrate.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "hooklane-mark-"));
  for (const name of ["state", "migrations"]) mkdirSync(join(folder, name));
  writeFileSync(join(folder, "migrations", "0001_first.sql"), "");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const markOf = (databases: string[]) =>
  createMigrationMark(join(folder, "state"), databases, join(folder, "migrations"));

test("databases are up to date once that is noted, and until there are more of them or of migrations", () => {
  expect(markOf(["DB"]).isSet()).toBe(false);
  markOf(["DB"]).set();
  expect(markOf(["DB"]).isSet()).toBe(true);
  expect(markOf(["DB", "DB_1"]).isSet()).toBe(false);
  writeFileSync(join(folder, "migrations", "0002_second.sql"), "");
  expect(markOf(["DB"]).isSet()).toBe(false);
  markOf(["DB"]).set();
  expect(markOf(["DB"]).isSet()).toBe(true);
});
