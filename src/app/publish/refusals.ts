import { AppError } from "../app-error.ts";

/** A refusal as a value, where others go on beside it. */
export function orRefusal<T>(check: () => T): T | AppError {
  try {
    return check();
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
}

/** For what a store could not confirm, whatever it was that failed. */
export async function orUnavailable<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    const error = new AppError(
      "unavailable",
      "The relay could not confirm that this is stored. Try again, with the same idempotency_key.",
    );
    error.cause = cause;
    throw error;
  }
}
