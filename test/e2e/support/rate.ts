import type { Received } from "./receiver.ts";

/** One request in time: it was made at some moment from `startedAt` to `arrivedAt`. */
export interface InTime {
  startedAt: number;
  arrivedAt: number;
}

/** A request as the receiver saw it. The relay says in it when it began, which is shortly before it is sent. */
export function inTime({ headers, at }: Received): InTime {
  return { startedAt: Date.parse(String(headers["x-webhook-attempt-started-at"])), arrivedAt: at };
}

/**
 * The longest that one more request than a rate allows a second may have been made within; never under 1,000 where it holds,
 * however long a busy machine holds requests up: that only makes it longer.
 */
export function shortestSpanMs(requests: InTime[], ratePerSecond: number): number {
  const inOrder = requests.toSorted((a, b) => a.arrivedAt - b.arrivedAt);
  return Math.min(
    ...inOrder.slice(ratePerSecond).map(({ arrivedAt }, i) => {
      const oneTooMany = inOrder.slice(i, i + ratePerSecond + 1);
      return arrivedAt - Math.min(...oneTooMany.map(({ startedAt }) => startedAt));
    }),
  );
}
