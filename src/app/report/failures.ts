import type { DeliveryRef } from "../../core/ids.ts";
import { HOUR_MS, reportWindow, type Report } from "../../core/report.ts";
import { parseInput } from "../parse-input.ts";
import { requireReader, type Principal } from "../principal.ts";
import type { Runtime } from "../runtime.ts";
import { ReportInput } from "./report-input.ts";

/** What failed in a window of one subscription, in one way. */
export interface FailureGroup {
  subscriptionId: string;
  endpointId: string;
  /** Null of deliveries that ended otherwise than by an attempt. */
  errorClass: string | null;
  /** Why those ended; null where there is an error class. */
  finalOutcome: string | null;
  deliveries: number;
  attempts: number;
  ended: number;
  firstAt: number;
  lastAt: number;
  /** The newest of them. */
  example: DeliveryRef;
}

export interface ReportFailuresDeps extends Pick<Runtime, "now"> {
  /** Most deliveries first, at most a thousand groups; `groups` is how many there are. All of them since `completeFrom`. */
  countFailures(
    tenantId: string,
    from: number,
    now: number,
  ): Promise<{ data: FailureGroup[]; groups: number; completeFrom: number }>;
}

/** Which subscriptions have failed deliveries, and how they failed. */
export async function reportFailures(
  deps: ReportFailuresDeps,
  principal: Principal,
  query: unknown,
): Promise<Report<FailureGroup> & { groups: number }> {
  requireReader(principal);
  const { window: lengthMs = HOUR_MS } = parseInput(ReportInput, query);
  const window = reportWindow(deps.now(), lengthMs);
  const counted = await deps.countFailures(principal.tenantId, window.from, window.until);
  return { ...counted, window, complete: counted.completeFrom === window.from };
}
