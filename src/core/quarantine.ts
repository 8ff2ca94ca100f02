/**
 * When a receiver that hangs is taken out of everybody's way, and how it comes back. What counts is the age of what is in
 * flight and that nothing was answered meanwhile, not timeouts that are over: by then the room has been held for so long.
 * Times in ms.
 */

/** What an isolate knows of its requests to one endpoint. */
export interface Standing {
  /** When those under way were begun. */
  startedAt: number[];
  /** When one was last answered completely, whatever the status; null when none was since it has had requests without a gap. */
  answeredAt: number | null;
}

/** Requests to one endpoint in an isolate while it answers, and while it has not answered lately. */
const MAX_REQUESTS = 32;
const MAX_UNANSWERED = 8;
/** An endpoint that has answered within this time may have more. */
const QUIET_MS = 1_000;
/** Nobody waits in memory for room at an endpoint that has answered nothing for so long. */
const STUCK_MS = 2_000;
/** Of at least MAX_UNANSWERED in flight so many have to be old. */
const MIN_OLD = MAX_UNANSWERED / 2;
/** Longer than a receiver that works takes for anything, however many it gets at once. */
const MAX_PATIENCE_MS = 5_000;
/** Of the endpoint's own timeout, where that is short. */
const PATIENCE_OF_TIMEOUT = 0.75;

/** How many requests an endpoint may have under way in one isolate: few until it answers, so that one that hangs holds few. */
export function roomOf(standing: Standing | null, now: number): number {
  return isQuiet(standing, now) ? MAX_UNANSWERED : MAX_REQUESTS;
}

/** Whether waiting for room at this endpoint is in vain for now. */
export function isStuck(standing: Standing | null, now: number): boolean {
  if (standing === null || !isQuiet(standing, now)) return false;
  return standing.startedAt.length >= MAX_UNANSWERED && standing.startedAt.some((at) => now - at >= STUCK_MS);
}

/**
 * Whether it hangs: as many in flight as it may have, half of them for longer than a working receiver takes, and nothing
 * answered in that time. One that is slow but answers (three seconds each, or a burst of 32 in no more than five) never does; one that takes
 * longer than `MAX_PATIENCE_MS` for its first answers does when it gets eight at once, and is back once it has answered.
 */
export function isHanging(standing: Standing | null, timeoutMs: number, now: number): boolean {
  if (standing === null || standing.startedAt.length < MAX_UNANSWERED) return false;
  const patienceMs = Math.min(MAX_PATIENCE_MS, timeoutMs * PATIENCE_OF_TIMEOUT);
  if (standing.answeredAt !== null && now - standing.answeredAt < patienceMs) return false;
  return standing.startedAt.filter((at) => now - at >= patienceMs).length >= MIN_OLD;
}

function isQuiet(standing: Standing | null, now: number): boolean {
  return standing === null || standing.answeredAt === null || now - standing.answeredAt > QUIET_MS;
}

/** How a quarantined endpoint is tried: an object remembers this, and begins at one when it has forgotten it. */
export interface Drain {
  /** Which quarantine this is of. */
  quarantinedAt: number;
  /** Requests at once: one until it answers, then doubled with each round that was answered. */
  size: number;
  /** Of this round. */
  answered: number;
  /** Rounds of one in a row that were not answered. */
  misses: number;
  /** When it last fell back to one: what was begun before says nothing new when it hangs. */
  since: number;
  /** No request before this. */
  notBefore: number;
}

const FULL_DRAIN = 32;
const PROBE_DELAYS_MS = [1_000, 2_000, 4_000, 8_000, 15_000, 30_000, 60_000];

export function beginDrain(quarantinedAt: number, now: number): Drain {
  return { quarantinedAt, size: 1, answered: 0, misses: 0, since: now, notBefore: 0 };
}

/** What an attempt's end means for the next: an answer, whatever it says, lets more through; none brings it back to one. */
export function continueDrain(drain: Drain, attempt: { startedAt: number; isAnswered: boolean }, now: number): Drain {
  if (attempt.isAnswered) {
    const answered = drain.answered + 1;
    const isRound = answered >= drain.size;
    const size = isRound ? Math.min(drain.size * 2, FULL_DRAIN) : drain.size;
    return { ...drain, size, answered: isRound ? 0 : answered, misses: 0, notBefore: 0 };
  }
  if (attempt.startedAt < drain.since) return drain;
  const misses = drain.misses + 1;
  const delayMs = PROBE_DELAYS_MS[Math.min(misses, PROBE_DELAYS_MS.length) - 1]!;
  return { ...drain, size: 1, answered: 0, misses, since: now, notBefore: now + delayMs };
}

/** Whether it has shown that it can do without. */
export function isDrained(drain: Drain): boolean {
  return drain.size === FULL_DRAIN;
}
