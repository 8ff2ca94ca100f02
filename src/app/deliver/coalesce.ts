/**
 * Does work one call at a time and lets what arrives meanwhile go together in the next: under load many writes share a
 * trip, and a lone one waits for nobody.
 */
export function coalesce<T>(work: (items: T[]) => Promise<void>, maxItems: number): (item: T) => Promise<void> {
  let waiting: { item: T; done: (error?: unknown) => void }[] = [];
  let running = false;

  async function run() {
    running = true;
    while (waiting.length > 0) {
      const batch = waiting.slice(0, maxItems);
      waiting = waiting.slice(maxItems);
      let failure: unknown;
      try {
        await work(batch.map(({ item }) => item));
      } catch (error) {
        failure = error ?? new Error("failed");
      }
      for (const { done } of batch) done(failure);
    }
    running = false;
  }

  return (item) =>
    new Promise((resolve, reject) => {
      waiting.push({ item, done: (error) => (error === undefined ? resolve() : reject(error)) });
      if (!running) void run();
    });
}
