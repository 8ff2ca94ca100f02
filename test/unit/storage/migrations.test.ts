import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { createDeclared, describeTable, migrate, migrations, tablesOf } from "./support/schema.ts";

/**
 * A relay's rows as the first version wrote them, two tenants', in an order that references allow. A table that a later
 * migration brings gets a row by its columns; where that is not enough, give it one here.
 */
const SEED: [table: string, row: Record<string, string | number | null | Uint8Array>][] = ["a", "b"].flatMap((x) => {
  const tenant_id = `ten_${x}`;
  const key = { tenant_id, event_id: `evt_${x}`, endpoint_id: `ep_${x}`, replay_no: 0 };
  const delivery = { subscription_id: `sub_${x}`, retry_policy_id: "p", created_at: 5, expires_at: 99 };
  const blob = (text: string) => new TextEncoder().encode(text);
  return [
    ["tenant_directory", { tenant_id, shard: "0", created_at: 1 }],
    ["tenant", { id: tenant_id, name: "Ädä", shard: "0", revision: 7, created_at: 1 }],
    ["source", { tenant_id, id: `src_${x}`, name: "orders", created_at: 1, signing_key: blob("k") }],
    ["source", { tenant_id, id: `src_${x}gone`, name: "orders", created_at: 1, deleted_at: 2 }],
    [
      "api_key",
      { tenant_id, id: `key_${x}`, key_hash: blob(`h${x}`), prefix: "hlk_0_", scope: "admin", created_at: 1 },
    ],
    ["retry_policy", { tenant_id, id: "p", policy: '{"max_attempts":10}' }],
    [
      "endpoint",
      { tenant_id, id: `ep_${x}`, url: "https://a.example/?ü=1", retry_policy_id: "p", created_at: 1, paused_at: 3 },
    ],
    [
      "signing_secret",
      { tenant_id, endpoint_id: `ep_${x}`, slot: 1, id: `sec_${x}`, wrapped_key: blob("w"), active_from: 1 },
    ],
    ["subscription", { tenant_id, id: `sub_${x}`, endpoint_id: `ep_${x}`, event_type_pattern: "*", created_at: 1 }],
    ["event_type", { tenant_id, name: "order.created", schema_version: 2, created_at: 1 }],
    [
      "event",
      {
        tenant_id,
        id: `evt_${x}`,
        source_id: `src_${x}`,
        type: "order.created",
        idempotency_key: "k",
        payload_ref: "30d/o#0",
        payload_sha256: blob("s"),
        payload_size: 3,
        payload_is_json: 1,
        content_type: "c",
        occurred_at: 5,
        relayed_at: 5,
        expires_at: 99,
        delivery_count: 1,
      },
    ],
    [
      "delivery",
      { ...key, ...delivery, status: "dead_letter", terminal_at: 9, final_outcome: "exhausted", lane_key: "" },
    ],
    ["delivery", { ...key, ...delivery, replay_no: 1, status: "pending", next_attempt_at: 50, replay_of: 0 }],
    [
      "attempt",
      { ...key, attempt_number: 1, requested_at: 6, endpoint_revision: 1, signing_secret_ids: "[]", status_code: 503 },
    ],
    [
      "lane_block",
      { tenant_id, endpoint_id: `ep_${x}`, lane_key: "", event_id: `evt_${x}`, replay_no: 0, blocked_at: 9 },
    ],
  ] as typeof SEED;
});

const columnsOf = (db: DatabaseSync, table: string) => db.prepare(`pragma table_info('${table}')`).all();

/** One row for a table that the seed does not know: what it refers to is there, and whatever may be absent is. */
function rowFor(db: DatabaseSync, table: string): (typeof SEED)[number][1] {
  const referred = new Map(
    db
      .prepare(`pragma foreign_key_list('${table}')`)
      .all()
      .map((key) => [key["from"], key]),
  );
  const row: (typeof SEED)[number][1] = {};
  for (const { name, type, notnull, dflt_value: fallback, pk } of columnsOf(db, table)) {
    if (notnull === 0 && pk === 0) continue;
    if (fallback !== null && pk === 0) continue;
    const key = referred.get(name);
    const value = key && db.prepare(`select min("${key["to"]}") as value from "${key["table"]}"`).get()!["value"];
    row[name as string] = (value ?? (/int|real/i.test(String(type)) ? 1 : "1")) as string | number;
  }
  return row;
}

/** Fills every table of a database at some version; gives back what stands in it then. */
function seed(db: DatabaseSync): Map<string, object[]> {
  const known = new Set(SEED.map(([table]) => table));
  const others = tablesOf(db).filter((table) => !known.has(table));
  for (const [table, given] of [...SEED, ...others.map((name) => [name, null] as const)]) {
    // In its turn: what it refers to is there by then.
    const row = given ?? rowFor(db, table);
    const columns = Object.keys(row);
    const places = columns.map(() => "?").join(", ");
    try {
      db.prepare(`insert into "${table}" (${columns.join(", ")}) values (${places})`).run(...Object.values(row));
    } catch (error) {
      throw new Error(`Table ${table} needs a row of its own in SEED: ${String(error)}`, { cause: error });
    }
  }
  return contents(db);
}

const contents = (db: DatabaseSync) =>
  new Map(tablesOf(db).map((table) => [table, db.prepare(`select * from "${table}"`).all()]));

const declared = await createDeclared();
const prefixes = migrations.map(({ file }, i) => ({
  file,
  applied: migrations.slice(0, i + 1),
  rest: migrations.slice(i + 1),
}));

/** What a migration gives another value on purpose, and a test of its own looks at. */
const CHANGED = ["source.signing_key_version"];

describe("a ledger that has been in use up to some migration, and gets those after it,", () => {
  test.each(prefixes)("$file: keeps every row and every value, and every reference holds", ({ applied, rest }) => {
    const db = new DatabaseSync(":memory:");
    migrate(db, applied);
    const before = seed(db);
    expect([...before].filter(([, rows]) => rows.length === 0)).toEqual([]);
    migrate(db, rest);
    const after = contents(db);
    for (const [table, rows] of before) {
      const columns = Object.keys(rows[0]!).filter((name) => !CHANGED.includes(`${table}.${name}`));
      const kept = after
        .get(table)!
        .map((row) => Object.fromEntries(columns.map((name) => [name, (row as any)[name]])));
      const were = rows.map((row) => Object.fromEntries(columns.map((name) => [name, (row as any)[name]])));
      expect(kept, table).toEqual(were);
    }
    expect(db.prepare("pragma foreign_key_check").all()).toEqual([]);
    expect(
      db
        .prepare("pragma integrity_check")
        .all()
        .map((row) => ({ ...row })),
    ).toEqual([{ integrity_check: "ok" }]);
  });

  test.each(prefixes)("$file: has the schema that queries are typed by", ({ applied, rest }) => {
    const db = new DatabaseSync(":memory:");
    migrate(db, applied);
    seed(db);
    migrate(db, rest);
    expect(tablesOf(db)).toEqual(tablesOf(declared));
    for (const table of tablesOf(db)) expect(describeTable(db, table)).toEqual(describeTable(declared, table));
  });

  test.each(prefixes.slice(1))(
    "$file: still has all that the code before it reads and writes, since code follows its migrations",
    ({ applied }) => {
      const [older, newer] = [new DatabaseSync(":memory:"), new DatabaseSync(":memory:")];
      migrate(older, applied.slice(0, -1));
      migrate(newer, applied);
      const viewsOf = (db: DatabaseSync) => db.prepare("select name from sqlite_master where type = 'view'").all();
      for (const { name } of [...tablesOf(older).map((table) => ({ name: table })), ...viewsOf(older)]) {
        const now = new Map(columnsOf(newer, name as string).map((column) => [column["name"], column["type"]]));
        for (const column of columnsOf(older, name as string)) {
          expect(now.get(column["name"]), `${name}.${column["name"]}`).toBe(column["type"]);
        }
      }
      // What the older code inserts leaves out what it does not know.
      expect(() => seed(newer)).not.toThrow();
    },
  );
});
