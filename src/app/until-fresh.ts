import { AppError } from "./app-error.ts";

const MAX_ROUNDS = 10;

/**
 * Runs a round of read, decide and conditional write; null says that what it had read was stale by the time it wrote, and
 * the round is run again. 503 `unavailable` when others were faster ten times in a row.
 */
export async function untilFresh<T>(round: () => Promise<T | null>): Promise<T> {
  for (let n = 0; n < MAX_ROUNDS; n++) {
    const done = await round();
    if (done !== null) return done;
  }
  throw new AppError("unavailable", "The configuration is being changed by many at once. Try again.");
}
