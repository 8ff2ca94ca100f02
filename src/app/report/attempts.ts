import { z } from "zod";
import { HOUR_MS, reportWindow, type Report } from "../../core/report.ts";
import { parseInput } from "../parse-input.ts";
import { requireReader, type Principal } from "../principal.ts";
import type { Runtime } from "../runtime.ts";
import type { Percentiles } from "./latency.ts";
import { ReportInput } from "./report-input.ts";

type By = "worker_id" | "relay_region";

/** Requests of one worker, or of one region, and what came of them. */
interface CountedAttempts {
  /** Null where it is not known. */
  value: string | null;
  /** Of events relayed in the window, and so are those that are open. */
  succeeded: number;
  /** Requests that began in the window, whatever they were of. */
  transient: number;
  rejected: number;
  unreachable: number;
  /** `internal` and `abandoned`, which are not among the unreachable. */
  relayFaults: number;
  open: number;
  lastAt: number;
  latency: Percentiles;
}

export interface AttemptGroup extends CountedAttempts {
  by: By;
}

export interface ReportAttemptsDeps extends Pick<Runtime, "now"> {
  /** Most failures first, at most a thousand groups; `groups` is how many there are. Of all since `completeFrom`. */
  countAttempts(
    tenantId: string,
    by: By,
    from: number,
    now: number,
  ): Promise<{ data: CountedAttempts[]; groups: number; completeFrom: number }>;
}

export const AttemptsInput = ReportInput.extend({ by: z.enum(["worker_id", "relay_region"]).optional() });

/** What came of requests, by who made them or where: what one worker alone gets wrong, or one region. */
export async function reportAttempts(
  deps: ReportAttemptsDeps,
  principal: Principal,
  query: unknown,
): Promise<Report<AttemptGroup> & { groups: number }> {
  requireReader(principal);
  const { window: lengthMs = HOUR_MS, by = "worker_id" } = parseInput(AttemptsInput, query);
  const now = deps.now();
  const window = reportWindow(now, lengthMs);
  const counted = await deps.countAttempts(principal.tenantId, by, window.from, now);
  const data = counted.data.map((group) => ({ ...group, by }));
  return { ...counted, data, window, complete: counted.completeFrom === window.from };
}
