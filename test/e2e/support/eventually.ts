/** How long a test waits for what comes at once on a quick machine: so long that no slow one fails by it. */
export const PATIENCE_MS = 120_000;
/** The same for what waits by itself for a lease to end, or for the watchdog's turn: up to a minute and a half. */
export const LEASE_PATIENCE_MS = 300_000;

/** Polls until `check` gives something; fails after the time given, which is only to end a test that would wait for ever. */
export async function eventually<T>(
  check: () => Promise<T | null | undefined | false>,
  timeoutMs = PATIENCE_MS,
): Promise<T> {
  const giveUpAt = Date.now() + timeoutMs;
  for (;;) {
    const value = await check();
    if (value) return value;
    if (Date.now() > giveUpAt) throw new Error(`Did not come about within ${timeoutMs} ms: ${check}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
