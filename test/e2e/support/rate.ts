/** The shortest time in which one more request started than a rate allows a second; never under 1,000 where it holds. */
export function shortestSpanMs(times: number[], ratePerSecond: number): number {
  const sorted = times.toSorted((a, b) => a - b);
  return Math.min(...sorted.slice(ratePerSecond).map((at, i) => at - sorted[i]!));
}

/**
 * What a receiver must see at least of a second in which a rate allows no more: between it and the relay a busy machine may
 * hold one request up for longer than the next.
 */
export const MIN_SECOND_MS = 900;
