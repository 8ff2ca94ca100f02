import { z } from "zod";

/**
 * A doorbell for deliveries of one tenant: `[delivery id, attempt number]` each; or for events that owe more than their commit
 * wrote. Nothing is lost with it: the ledger knows what is due.
 */
export const RingMessage = z.object({
  shard: z.string(),
  tenant: z.string(),
  deliveries: z.array(z.tuple([z.string(), z.int().positive()])),
  /** Messages outlive the version that sent them: what is added to them is optional. */
  fan_outs: z.array(z.string()).optional(),
});
export type RingMessage = z.infer<typeof RingMessage>;

/** An attempt that was made and could not be put on record yet. The report is opaque here; the use-case made it. */
export const ReportMessage = z.object({ shard: z.string(), report: z.looseObject({ tenantId: z.string() }) });
export type ReportMessage = z.infer<typeof ReportMessage>;
