import { parseInput } from "../parse-input.ts";
import { DAY_MS, reportWindow, type Report } from "../../core/report.ts";
import { requireReader, type Principal } from "../principal.ts";
import type { Runtime } from "../runtime.ts";
import { ReportInput } from "./report-input.ts";

const DEFAULT_WINDOW_MS = 7 * DAY_MS;

/** An endpoint, or a subscription of one, that was disabled. */
export interface Disabled {
  endpointId: string;
  /** Null where it is the endpoint itself. */
  subscriptionId: string | null;
  lastDisabledAt: number;
  /** Null once it was enabled again. */
  disabledAt: number | null;
  /** Of an endpoint, while it is disabled. */
  disabledReason: string | null;
}

export interface ReportDisabledDeps extends Pick<Runtime, "now"> {
  /** Newest first, a thousand at most, and all of them since `completeFrom`. */
  listDisabled(tenantId: string, from: number): Promise<{ data: Disabled[]; completeFrom: number }>;
}

/** Which endpoints and subscriptions were disabled in a window, enabled again or not; those that were deleted are not among them. */
export async function reportDisabled(
  deps: ReportDisabledDeps,
  principal: Principal,
  query: unknown,
): Promise<Report<Disabled>> {
  requireReader(principal);
  const { window: lengthMs = DEFAULT_WINDOW_MS } = parseInput(ReportInput, query);
  const window = reportWindow(deps.now(), lengthMs);
  const listed = await deps.listDisabled(principal.tenantId, window.from);
  return { ...listed, window, complete: listed.completeFrom === window.from };
}
