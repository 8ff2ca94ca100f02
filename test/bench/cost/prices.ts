import type { Counts } from "./counting/counts.ts";

/** When the list was read. */
export const PRICES_DATE = "2026-11-30";

/**
 * Dollars a million, beyond what the Workers Paid plan includes. From Cloudflare's pages on pricing of Workers, D1, R2, Queues
 * and Durable Objects. Deletes from R2 and trips cost nothing.
 */
export const PRICES = {
  workerRequest: 0.3,
  rowRead: 0.001,
  rowWritten: 1,
  classA: 4.5,
  classB: 0.36,
  queueOperation: 0.4,
  /** A call or an alarm. */
  objectRequest: 0.15,
  /** Of an object's time, at the 128 MB that each is billed. */
  objectSecond: 1.6,
} as const;

/** Dollars a million units of whatever caused these counts a unit. Without processor time, logs and what is stored. */
export function dollarsPerMillion(counts: Counts, alarms: number): number {
  return (
    (counts.invocations - alarms) * PRICES.workerRequest +
    (counts.rowsRead * PRICES.rowRead + (counts.rowsWritten + counts.objectRowsWritten) * PRICES.rowWritten) +
    (counts.classA * PRICES.classA + counts.classB * PRICES.classB) +
    (counts.queueWrites + counts.queueReads + counts.queueDeletes) * PRICES.queueOperation +
    (counts.objectCalls + alarms) * PRICES.objectRequest +
    (counts.objectMs / 1_000) * PRICES.objectSecond
  );
}
