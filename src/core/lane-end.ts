import type { FinalOutcome } from "./outcome.ts";
import { deadlineMs, type RetryPolicy } from "./retry-policy.ts";

/** A pending head of a lane, and what its endpoint says. Times in ms since 1970 UTC. */
export interface WaitingHead {
  /** When its lane first let it through; null before. */
  scheduledAt: number | null;
  expiresAt: number;
  policy: RetryPolicy;
  blocked: boolean;
  endpointDisabled: boolean;
  endpointDeleted: boolean;
  pausedAt: number | null;
  resumedAt: number | null;
  maxHeadHoldSeconds: number | null;
}

export type HeadEnd = { status: "failed" | "expired" | "dead_letter"; finalOutcome: FinalOutcome };

/**
 * How a head's waiting has ended, null while it may go on. Its age begins when its lane lets it through, and anew with a
 * resume; a pause and a block stop it, a disabled endpoint does not. Every wait ends where the event does.
 */
export function endOfWait(head: WaitingHead, now: number): HeadEnd | null {
  if (head.endpointDeleted) return { status: "failed", finalOutcome: "endpoint_deleted" };
  if (now >= head.expiresAt) return { status: "expired", finalOutcome: "expired" };
  const isStopped = head.pausedAt !== null && !head.endpointDisabled;
  if (head.scheduledAt === null || isStopped || head.blocked) return null;
  const agedFrom = Math.max(head.scheduledAt, head.resumedAt ?? 0);
  if (now >= deadlineMs(head.policy, agedFrom, head.expiresAt)) return { status: "expired", finalOutcome: "expired" };
  const holdEndsAt = headHoldEndsAt(head);
  if (holdEndsAt !== null && now >= holdEndsAt) return { status: "dead_letter", finalOutcome: "held_too_long" };
  return null;
}

/** Until when a head may hold up its lane; null where nothing says so, or before it was let through. */
export function headHoldEndsAt({
  scheduledAt,
  resumedAt,
  maxHeadHoldSeconds,
}: Pick<WaitingHead, "scheduledAt" | "resumedAt" | "maxHeadHoldSeconds">): number | null {
  if (scheduledAt === null || maxHeadHoldSeconds === null) return null;
  return Math.max(scheduledAt, resumedAt ?? 0) + maxHeadHoldSeconds * 1000;
}
