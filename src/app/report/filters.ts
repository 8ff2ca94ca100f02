import { HOUR_MS, reportWindow, type Report } from "../../core/report.ts";
import { parseInput } from "../parse-input.ts";
import { requireReader, type Principal } from "../principal.ts";
import type { Runtime } from "../runtime.ts";
import type { Percentiles } from "./latency.ts";
import { ReportInput } from "./report-input.ts";

export interface FilterCosts extends Percentiles {
  max: number | null;
}

/** What a subscription's filter cost on what it took. */
export interface FilterGroup {
  subscriptionId: string;
  endpointId: string;
  steps: FilterCosts;
  /** Of none where the clock stands still while code runs. */
  ms: FilterCosts;
}

export interface ReportFiltersDeps extends Pick<Runtime, "now"> {
  /** Slowest first, at most a thousand; `groups` is how many there are. Of all that was relayed since `completeFrom`. */
  measureFilters(
    tenantId: string,
    from: number,
    now: number,
  ): Promise<{ data: FilterGroup[]; groups: number; completeFrom: number }>;
}

/** Which filters are slow, of what was relayed in the window. */
export async function reportFilters(
  deps: ReportFiltersDeps,
  principal: Principal,
  query: unknown,
): Promise<Report<FilterGroup> & { groups: number }> {
  requireReader(principal);
  const { window: lengthMs = HOUR_MS } = parseInput(ReportInput, query);
  const now = deps.now();
  const window = reportWindow(now, lengthMs);
  const measured = await deps.measureFilters(principal.tenantId, window.from, now);
  return { ...measured, window, complete: measured.completeFrom === window.from };
}
