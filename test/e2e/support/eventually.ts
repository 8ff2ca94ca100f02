/** Polls until `check` gives something; fails after the time given (default 30 s). */
export async function eventually<T>(
  check: () => Promise<T | null | undefined | false>,
  timeoutMs = 30_000,
): Promise<T> {
  const giveUpAt = Date.now() + timeoutMs;
  for (;;) {
    const value = await check();
    if (value) return value;
    if (Date.now() > giveUpAt) throw new Error(`Did not come about within ${timeoutMs} ms: ${check}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
