/** What the counting Worker says of itself, shared by it and by whoever asks. */
export const COUNTS_PATH = "/bench/counts";
/** Makes every watchdog tick at once. */
export const TICK_PATH = "/bench/tick";
/** Runs the statement that is its body, and says what it cost. */
export const SQL_PATH = "/bench/sql";

export interface SqlAnswer {
  rows: number;
  rowsRead: number;
}

/** Who did the work: requests of the API, queue consumers, lanes, the watchdog, cron. */
export const ORIGINS = ["request", "queue", "lane", "watchdog", "cron"] as const;
export type Origin = (typeof ORIGINS)[number];

/** Units as they are billed, but for trips and milliseconds. */
export interface Counts {
  /** Invocations: of the Worker by a request, a batch of messages or cron; of an object by an alarm. */
  invocations: number;
  rowsWritten: number;
  rowsRead: number;
  /** Round trips to D1. */
  ledgerTrips: number;
  /** R2 puts and lists. */
  classA: number;
  /** R2 gets and heads. */
  classB: number;
  /** Free. */
  objectsDeleted: number;
  /** Each for every 64 KB of a message that was begun. */
  queueWrites: number;
  queueReads: number;
  queueDeletes: number;
  /** Calls of Durable Objects. */
  objectCalls: number;
  /** Rows in the storage of objects: alarms that were set, and what was put. */
  objectRowsWritten: number;
  /** Milliseconds in which an object was at work, or waited for a request that it made. */
  objectMs: number;
}

/** What one statement has cost in all. */
export interface StatementCounts {
  origin: Origin;
  sql: string;
  calls: number;
  rowsRead: number;
  rowsWritten: number;
}

export interface CountsAnswer {
  counts: Record<Origin, Counts>;
  statements: StatementCounts[];
  /** Publish requests that were answered 202 or 200, and calls of D1 and R2 that each made before its answer. */
  acks: { count: number; trips: number };
  /** Of the first shard. */
  ledgerBytes: number;
}

export function createCounts(): Counts {
  return {
    invocations: 0,
    rowsWritten: 0,
    rowsRead: 0,
    ledgerTrips: 0,
    classA: 0,
    classB: 0,
    objectsDeleted: 0,
    queueWrites: 0,
    queueReads: 0,
    queueDeletes: 0,
    objectCalls: 0,
    objectRowsWritten: 0,
    objectMs: 0,
  };
}

/** All that was counted, whoever did it. */
export function addCounts(all: Counts[]): Counts {
  const sum = createCounts();
  for (const counts of all) for (const [unit, n] of Object.entries(counts)) sum[unit as keyof Counts] += n;
  return sum;
}
