import { sql, type SQL } from "drizzle-orm";
import type { DrizzleD1Database } from "drizzle-orm/d1";
import { encodeRandomPart } from "../../core/ids.ts";
import { RetryPolicy } from "../../core/retry-policy.ts";
import { sha256 } from "../../core/sha256.ts";
import { retryPolicy } from "../schema.ts";

/** A policy under the id that its content gives it: equal policies are one row, and a row never changes. */
export interface RetryPolicyRow {
  id: string;
  /** Canonical JSON: every field, in the order of the schema. */
  policy: string;
}

export async function toRetryPolicyRow(policy: RetryPolicy): Promise<RetryPolicyRow> {
  const fields = Object.keys(RetryPolicy.shape) as (keyof RetryPolicy)[];
  const canonical = JSON.stringify(Object.fromEntries(fields.map((field) => [field, policy[field]])));
  const digest = await sha256(canonical);
  // The digits of public ids without a prefix: every delivery row repeats it.
  const id = encodeRandomPart(digest.subarray(0, 10));
  return { id, policy: canonical };
}

/**
 * Goes into the batch of their first users, before them, and under their condition if they have one. Any number of rows is
 * one statement.
 */
export function insertRetryPolicies(
  db: DrizzleD1Database,
  tenantId: string,
  rows: RetryPolicyRow[],
  condition: SQL = sql`true`,
) {
  return db
    .insert(retryPolicy)
    .select(
      sql`select ${tenantId}, value ->> 'id', value ->> 'policy' from json_each(${JSON.stringify(rows)}) where ${condition}`,
    )
    .onConflictDoNothing();
}

/** The same for the rows of the ledger: of one policy, or none. */
export function keepRetryPolicy(db: D1Database, tenantId: string, row: RetryPolicyRow | null): D1PreparedStatement[] {
  if (row === null) return [];
  const insert = "insert into retry_policy (tenant_id, id, policy) values (?, ?, ?) on conflict do nothing";
  return [db.prepare(insert).bind(tenantId, row.id, row.policy)];
}
