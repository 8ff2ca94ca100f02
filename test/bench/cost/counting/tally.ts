import { createCounts, ORIGINS, type Counts, type CountsAnswer, type Origin, type StatementCounts } from "./counts.ts";

/**
 * What was counted since the last reset. Of this module: locally one isolate runs requests, queues and objects alike, so it
 * is all there is.
 */
let counts = emptyCounts();
let statements = new Map<string, StatementCounts>();
let acks: CountsAnswer["acks"] = { count: 0, trips: 0 };

function emptyCounts(): Record<Origin, Counts> {
  return Object.fromEntries(ORIGINS.map((origin) => [origin, createCounts()])) as Record<Origin, Counts>;
}

export function count(origin: Origin, unit: keyof Counts, n = 1): void {
  counts[origin][unit] += n;
}

export function countStatement(origin: Origin, sql: string, meta: D1Meta): void {
  count(origin, "rowsRead", meta.rows_read);
  count(origin, "rowsWritten", meta.rows_written);
  const key = `${origin} ${sql}`;
  let known = statements.get(key);
  if (!known) {
    statements.set(key, (known = { origin, sql: oneLine(sql), calls: 0, rowsRead: 0, rowsWritten: 0 }));
  }
  known.calls++;
  known.rowsRead += meta.rows_read;
  known.rowsWritten += meta.rows_written;
}

export function countAck(trips: number): void {
  acks.count++;
  acks.trips += trips;
}

export function readTally(): Omit<CountsAnswer, "ledgerBytes"> {
  return { counts, statements: [...statements.values()], acks };
}

export function resetTally(): void {
  counts = emptyCounts();
  statements = new Map();
  acks = { count: 0, trips: 0 };
}

const oneLine = (sql: string) => sql.replace(/\s+/g, " ").trim();
