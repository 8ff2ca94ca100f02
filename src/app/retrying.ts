const PAUSES_MS = [50, 250];

/**
 * Tries work that may be done twice up to three times. For writes only where a second one changes nothing: a store may
 * have committed what it says it refused.
 */
export async function retrying<T>(sleep: (ms: number) => Promise<void>, work: () => Promise<T>): Promise<T> {
  for (const pauseMs of PAUSES_MS) {
    try {
      return await work();
    } catch {
      await sleep(pauseMs);
    }
  }
  return work();
}
