import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";

const folder = resolve(import.meta.dirname, "../../../migrations");
const files = readdirSync(folder).toSorted();
const added = files.findIndex((file) => file.endsWith("_source_directory.sql"));
const read = (file: string) => readFileSync(join(folder, file), "utf8");

test("sources from before there were keys count none, and keep all else", () => {
  const db = new DatabaseSync(":memory:");
  for (const file of files.slice(0, added)) db.exec(read(file));
  db.exec("insert into tenant (id, name, shard, created_at) values ('ten_a', 'a', '0', 1)");
  db.exec("insert into source (tenant_id, id, name, created_at) values ('ten_a', 'src_a', 'orders', 2)");
  const before = db.prepare("select * from source").get();
  expect(before).toMatchObject({ signing_key_version: 1, signing_key: null });
  db.exec(read(files[added]!));
  expect(db.prepare("select * from source").get()).toEqual({ ...before, signing_key_version: 0 });
});
