import type { Runtime } from "../runtime.ts";
import { recordAttempt, type RecordAttemptDeps } from "./record-attempt.ts";
import type { AttemptReport } from "./report.ts";

export interface KeepReportDeps extends RecordAttemptDeps, Pick<Runtime, "now" | "sleep"> {
  /** Hands a report to the outcomes queue, from where it is recorded later. Throws when the queue refuses. */
  queueReport(report: AttemptReport): Promise<void>;
  logFault(what: string, error: unknown): void;
}

/** While the ledger and the queue both refuse, memory keeps the report this long. */
const MAX_KEEP_MS = 20_000;

/**
 * Sees to it that a request that was made is on record, now or later, and is not made again because a store was away: in
 * the ledger, else in the outcomes queue, else in memory until one of them takes it. Only the death of this process, or
 * both being away for longer, can lose it; then the lease ends and the delivery is attempted again.
 */
export async function keepReport(deps: KeepReportDeps, report: AttemptReport): Promise<void> {
  const giveUpAt = deps.now() + MAX_KEEP_MS;
  for (let pauseMs = 250; ; pauseMs *= 2) {
    try {
      return await recordAttempt(deps, report);
    } catch (error) {
      deps.logFault("record attempt", error);
    }
    try {
      return await deps.queueReport(report);
    } catch (error) {
      deps.logFault("queue attempt report", error);
    }
    if (deps.now() + pauseMs > giveUpAt) return;
    await deps.sleep(pauseMs);
  }
}
