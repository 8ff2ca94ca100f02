import { readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

/** The first shard's database of a relay that is stopped, set to lose everything should this process die. */
export function openLedger(stateDir: string): DatabaseSync {
  const folder = join(stateDir, "v3/d1/miniflare-D1DatabaseObject");
  const files = readdirSync(folder).filter((name) => name.endsWith(".sqlite") && name !== "metadata.sqlite");
  if (files.length !== 1) throw new Error(`${folder} holds ${files.length} databases: one shard is what this fills.`);
  const db = new DatabaseSync(join(folder, files[0]!), { enableForeignKeyConstraints: false });
  // A log would have everything written twice.
  for (const pragma of ["journal_mode = off", "synchronous = off", "cache_size = -1000000", "temp_store = memory"]) {
    db.exec(`pragma ${pragma}`);
  }
  return db;
}

/** As the relay keeps it. */
export function closeLedger(db: DatabaseSync): void {
  db.exec("pragma journal_mode = wal");
  db.close();
}

/** Indexes are made once all rows are there: sorting them is much faster than finding each its place. */
export function withoutIndexes(db: DatabaseSync, tables: string[], work: () => void): void {
  const indexes = db
    .prepare(
      `select name, sql from sqlite_master where type = 'index' and sql is not null
         and tbl_name in (select value from json_each(?))`,
    )
    .all(JSON.stringify(tables)) as { name: string; sql: string }[];
  db.exec("begin");
  for (const { name } of indexes) db.exec(`drop index ${name}`);
  work();
  for (const { sql } of indexes) db.exec(sql);
  db.exec("commit");
}
