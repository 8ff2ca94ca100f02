/** The highest rate an endpoint may have. */
export const MAX_RATE_PER_SECOND = 1_000;

/** Requests are counted over this much more than a second, so that neighbours in time do not meet on the wire. */
export const RATE_WINDOW_MS = 1_020;

/** What is claimed waits about this long for the turn of its request. */
const MAX_TURN_WAIT_MS = 100;

/** One place in the log that a lane with a rate is paced by: begun, then claimed, then sent. */
export interface Turn {
  begunAt: number;
  /** When it came to where it is. */
  at: number;
  stage: "begun" | "claimed" | "sent";
}

/**
 * How many requests may be claimed and not sent yet: no more than have their turns soon, however late the answers of the
 * ledger come. So what was claimed before a change is not sent long after it.
 */
export function maxClaimed(ratePerSecond: number): number {
  return Math.max(1, Math.ceil((ratePerSecond * MAX_TURN_WAIT_MS) / 1_000));
}

/**
 * The first moment from `now` on at which one more request keeps the rate: never more than `ratePerSecond` starts in any
 * one second, and spread over it rather than all at its beginning. `starts` in order of time.
 */
export function nextStartAt(ratePerSecond: number | null, starts: number[], now: number): number {
  if (ratePerSecond === null) return now;
  const last = starts.at(-1);
  const gapAt = last === undefined ? now : last + Math.floor(800 / ratePerSecond);
  return Math.max(roomInSecondAt(ratePerSecond, starts, now), gapAt);
}

/**
 * The first moment from `now` on at which one more may be claimed: when a second has room for it, and so shortly before the
 * request's own turn that neither waits long for the other. Claims need not be spread as requests are.
 */
export function nextClaimAt(ratePerSecond: number, turns: Iterable<Turn>, now: number): number {
  const all = [...turns];
  const turnAt = nextStartAt(ratePerSecond, timesOf(all, "sent"), now);
  return Math.max(roomInSecondAt(ratePerSecond, timesOf(all, "claimed", "sent"), now), turnAt - MAX_TURN_WAIT_MS);
}

function roomInSecondAt(ratePerSecond: number, starts: number[], now: number): number {
  const nth = starts.at(-ratePerSecond);
  return nth === undefined ? now : Math.max(now, nth + RATE_WINDOW_MS);
}

/** When the turns that have come to one of `stages` came there, in order. */
export function timesOf(turns: Iterable<Turn>, ...stages: Turn["stage"][]): number[] {
  return inOrder([...turns].filter(({ stage }) => stages.includes(stage)).map(({ at }) => at));
}

/** When all of them were begun, in order. */
export function beginningsOf(turns: Iterable<Turn>): number[] {
  return inOrder([...turns].map(({ begunAt }) => begunAt));
}

const inOrder = (times: number[]) => times.toSorted((a, b) => a - b);
