/** Pieces that the configuration's stores have in common. */
import { getTableColumns, sql, type InferInsertModel, type SQL } from "drizzle-orm";
import type { DrizzleD1Database } from "drizzle-orm/d1";
import type { SQLiteColumn, SQLiteTable } from "drizzle-orm/sqlite-core";
import { toHex } from "../../core/hex.ts";
import type { PageKey } from "../../core/model.ts";
import { OWED_TO_ENDPOINT } from "../ledger/fan-out.ts";
import { tenant } from "../schema.ts";

/** Belongs into the batch of every change of configuration: publishes commit only under the revision they matched. */
export function bumpTenantRevision(db: DrizzleD1Database, tenantId: string, condition: SQL = sql`true`) {
  return db
    .update(tenant)
    .set({ revision: sql`${tenant.revision} + 1` })
    .where(sql`${tenant.id} = ${tenantId} and ${condition}`);
}

/**
 * `owedToEndpoint`, for a batch that changes the policy of an endpoint or of its subscriptions: first in it, so that a delivery
 * has the policy that held when its event was accepted. In a batch a raw statement can have no parameters.
 */
export function insertOwed(db: DrizzleD1Database, tenantId: string, endpointId: string) {
  const values = { "?1": toLiteral(tenantId), "?2": toLiteral(endpointId) };
  return db.run(sql.raw(OWED_TO_ENDPOINT.replace(/\?[12]/g, (name) => values[name as "?1"])));
}

/** Nothing of it is read as SQL, whatever it is. */
function toLiteral(text: string): string {
  return `cast(x'${toHex(new TextEncoder().encode(text))}' as text)`;
}

/** The rows after `after`, in the order of creation and id, newest first. */
export function afterKey(createdAt: SQLiteColumn, id: SQLiteColumn, after: PageKey | null): SQL | undefined {
  return after ? sql`(${createdAt}, ${id}) < (${after.createdAt}, ${after.id})` : undefined;
}

/** Whether a tenant has fewer living rows of `table` than `limit`: part of the insert, so that many at once fill it exactly. */
export function hasRoom(table: SQLiteTable, isLiving: SQL | undefined, limit: number | SQL): SQL {
  return sql`(select count(*) from ${table} where ${isLiving}) < ${limit}`;
}

/** A select of one row of values where `condition` holds, else of none: `insert … select`, an insert under a condition. */
export function valuesWhere<T extends SQLiteTable>(table: T, values: InferInsertModel<T>, condition: SQL): SQL {
  const given = values as Record<string, unknown>;
  const row = Object.entries(getTableColumns(table)).map(([name, column]) =>
    sql.param(given[name] === undefined ? (column.default ?? null) : given[name], column),
  );
  return sql`select ${sql.join(row, sql`, `)} where ${condition}`;
}

/** What a `set` writes for a field that is not given: what stands there. */
export function orKeep<T>(value: T | undefined, column: SQLiteColumn): T | SQL {
  return value === undefined ? sql`${column}` : value;
}

/** `columns` as SQLite names them: `source.tenant_id, source.name`. */
export function isUniqueViolation(error: unknown, columns: string): boolean {
  let cause = error;
  while (cause instanceof Error) {
    if (cause.message.includes(`UNIQUE constraint failed: ${columns}`)) return true;
    cause = cause.cause;
  }
  return false;
}
