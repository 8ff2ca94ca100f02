/**
 * Begins calls in the order in which they come, at most `most` of them under way at once, with a pause before one that had to wait.
 * For one invocation: the work of another may not be waited for on its behalf. A call's promise is that of its work.
 */
export function inTurn(most: number, pause: () => Promise<void>): <T>(work: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = [];
  let underWay = 0;

  /** A place goes to the next as it is, so that nobody who comes meanwhile takes it. */
  async function handOver(): Promise<void> {
    if (waiting.length > 0) await pause();
    const next = waiting.shift();
    if (next) next();
    else underWay--;
  }

  return async (work) => {
    if (underWay === most) await new Promise<void>((begin) => waiting.push(begin));
    else underWay++;
    try {
      return await work();
    } finally {
      void handOver();
    }
  };
}
