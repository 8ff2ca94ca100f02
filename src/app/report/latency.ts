import { z } from "zod";
import { HOUR_MS, reportWindow, type Report } from "../../core/report.ts";
import { parseInput } from "../parse-input.ts";
import { requireReader, type Principal } from "../principal.ts";
import type { Runtime } from "../runtime.ts";
import { ReportInput } from "./report-input.ts";

/** Milliseconds by nearest rank: each is one that there was. Null of none. */
export interface Percentiles {
  count: number;
  p50: number | null;
  p95: number | null;
  p99: number | null;
}

/** What was relayed in a window, of one source or to one endpoint, replays and test sends apart. */
export interface LatencyGroup {
  /** Null where endpoints are told apart. */
  sourceId: string | null;
  sourceName: string | null;
  /** Null where sources are told apart. */
  endpointId: string | null;
  events: number;
  /** Events with a delivery that nobody has answered with a 2xx. */
  undeliveredEvents: number;
  deliveries: number;
  delivered: number;
  /** Neither delivered nor ended. */
  open: number;
  /** To the end of the first successful attempt. */
  occurredToDelivered: Percentiles;
  /** The producer's own delay. */
  occurredToRelayed: Percentiles;
  relayedToFirstRequest: Percentiles;
  /** What order, cap, rate and holds of the endpoint cost. */
  limitsWait: Percentiles;
  /** From when only a free worker was missing to the first request. */
  relayLag: Percentiles;
}

export interface ReportLatencyDeps extends Pick<Runtime, "now"> {
  /** Most events first, at most a thousand groups; `groups` is how many there are. Of all that was relayed since `completeFrom`. */
  measureLatencies(
    tenantId: string,
    by: "source" | "endpoint",
    from: number,
    now: number,
  ): Promise<{ data: LatencyGroup[]; groups: number; completeFrom: number }>;
}

export const LatencyInput = ReportInput.extend({ by: z.enum(["source", "endpoint"]).optional() });

/** How long what was relayed in the window took, and where the time went. */
export async function reportLatency(
  deps: ReportLatencyDeps,
  principal: Principal,
  query: unknown,
): Promise<Report<LatencyGroup> & { groups: number }> {
  requireReader(principal);
  const { window: lengthMs = HOUR_MS, by = "source" } = parseInput(LatencyInput, query);
  const now = deps.now();
  const window = reportWindow(now, lengthMs);
  const measured = await deps.measureLatencies(principal.tenantId, by, window.from, now);
  return { ...measured, window, complete: measured.completeFrom === window.from };
}
