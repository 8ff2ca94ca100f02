import type { DeliveryRef } from "../../core/ids.ts";
import { reportWindow, type Report } from "../../core/report.ts";
import { parseInput } from "../parse-input.ts";
import { requireReader, type Principal } from "../principal.ts";
import type { Runtime } from "../runtime.ts";
import { ReportInput } from "./report-input.ts";

/** The open dead letters of one subscription that died of the same. */
export interface DeadLetterGroup {
  subscriptionId: string;
  endpointId: string;
  finalOutcome: string;
  deliveries: number;
  oldestAt: number;
  newestAt: number;
  /** The newest of them. */
  example: DeliveryRef;
}

export interface ReportDeadLettersDeps extends Pick<Runtime, "now"> {
  /** Most deliveries first, at most a thousand groups; `groups` is how many there are. All of them since `completeFrom`. */
  countDeadLetters(
    tenantId: string,
    from: number | null,
    now: number,
  ): Promise<{ data: DeadLetterGroup[]; groups: number; completeFrom: number | null }>;
}

/** What is dead now and waits to be replayed, by subscription and by reason. Without a window whenever it died. */
export async function reportDeadLetters(
  deps: ReportDeadLettersDeps,
  principal: Principal,
  query: unknown,
): Promise<Report<DeadLetterGroup> & { groups: number }> {
  requireReader(principal);
  const { window: lengthMs } = parseInput(ReportInput, query);
  const now = deps.now();
  const window = lengthMs === undefined ? { from: null, until: now } : reportWindow(now, lengthMs);
  const counted = await deps.countDeadLetters(principal.tenantId, window.from, now);
  return { ...counted, window, complete: counted.completeFrom === window.from };
}
