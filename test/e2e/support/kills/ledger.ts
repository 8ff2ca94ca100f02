import { readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { deliveryId } from "../../../../src/core/ids.ts";

export interface LedgerEvent {
  id: string;
  key: string;
  /** Whether all that it owes is on record. */
  isDispatched: boolean;
  deliveryCount: number;
}

export interface LedgerDelivery {
  id: string;
  eventId: string;
  endpointId: string;
  status: string;
  attemptCount: number;
  attempts: LedgerAttempt[];
}

export interface LedgerAttempt {
  number: number;
  /** Milliseconds since 1970. */
  requestedAt: number;
  outcomeClass: string | null;
  errorClass: string | null;
  statusCode: number | null;
  /** As the relay measured it. */
  latencyMs: number | null;
}

export interface Ledger {
  events: LedgerEvent[];
  deliveries: LedgerDelivery[];
  /** What SQLite itself finds wrong with the file; `ok` where nothing is. */
  integrity: string;
}

type Row = Record<string, any>;

/** All that a relay which has stopped left of a tenant in its database: tens of thousands of rows, which the API has in pages. */
export function readLedger(stateDir: string, tenantId: string): Ledger {
  const folder = join(stateDir, "v3", "d1");
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".sqlite"));
  for (const file of files) {
    const db = new DatabaseSync(join(folder, file));
    try {
      if (db.prepare("select 1 from sqlite_master where name = 'delivery'").get()) return readTables(db, tenantId);
    } finally {
      db.close();
    }
  }
  throw new Error(`None of ${files.join()} in ${folder} is a ledger`);
}

function readTables(db: DatabaseSync, tenantId: string): Ledger {
  const rowsOf = (sql: string): Row[] => db.prepare(sql).all(tenantId);
  const keyOf = (row: Row) => `${row["event_id"]} ${row["endpoint_id"]} ${row["replay_no"]}`;
  const attempts = Map.groupBy(
    rowsOf(
      `select event_id, endpoint_id, replay_no, attempt_number, requested_at, outcome_class, error_class, status_code, latency_ms
       from attempt where tenant_id = ? order by attempt_number`,
    ),
    keyOf,
  );
  const deliveries = rowsOf(
    "select event_id, endpoint_id, replay_no, status, attempt_count from delivery where tenant_id = ?",
  ).map((row) => ({
    id: deliveryId({ eventId: row["event_id"], endpointId: row["endpoint_id"], replayNo: row["replay_no"] }),
    eventId: row["event_id"],
    endpointId: row["endpoint_id"],
    status: row["status"],
    attemptCount: row["attempt_count"],
    attempts: (attempts.get(keyOf(row)) ?? []).map((attempt) => ({
      number: attempt["attempt_number"],
      requestedAt: attempt["requested_at"],
      outcomeClass: attempt["outcome_class"],
      errorClass: attempt["error_class"],
      statusCode: attempt["status_code"],
      latencyMs: attempt["latency_ms"],
    })),
  }));
  const events = rowsOf("select id, idempotency_key, dispatched_at, delivery_count from event where tenant_id = ?");
  const checks = [...db.prepare("pragma integrity_check").all(), ...db.prepare("pragma foreign_key_check").all()];
  return {
    events: events.map((row) => ({
      id: row["id"],
      key: row["idempotency_key"],
      isDispatched: row["dispatched_at"] !== null,
      deliveryCount: row["delivery_count"],
    })),
    deliveries,
    integrity: checks.map((row) => Object.values(row).join(" ")).join(),
  };
}
