import { z } from "zod";
import type { DeliveryRef } from "../../core/ids.ts";
import type { Report } from "../../core/report.ts";
import { parseInput } from "../parse-input.ts";
import { requireReader, type Principal } from "../principal.ts";
import type { Runtime } from "../runtime.ts";

export const UndeliveredInput = z.strictObject({});

/** What an endpoint is still owed. */
export interface Undelivered {
  endpointId: string;
  /** Null where it was not counted to the end. */
  depth: number | null;
  oldestAt: number;
  oldest: DeliveryRef;
}

export interface ReportUndeliveredDeps extends Pick<Runtime, "now"> {
  /** Oldest first, a thousand at most; `groups` is how many there are. */
  listUndelivered(tenantId: string, now: number): Promise<{ data: Undelivered[]; groups: number; complete: boolean }>;
}

/** How old the oldest open delivery of each endpoint is, and how many there are. */
export async function reportUndelivered(
  deps: ReportUndeliveredDeps,
  principal: Principal,
  query: unknown,
): Promise<Report<Undelivered> & { groups: number }> {
  requireReader(principal);
  parseInput(UndeliveredInput, query);
  const now = deps.now();
  const listed = await deps.listUndelivered(principal.tenantId, now);
  return { ...listed, window: { from: null, until: now }, completeFrom: null };
}
