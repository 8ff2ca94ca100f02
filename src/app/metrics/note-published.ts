import { AppError } from "../app-error.ts";
import type { Accepted } from "../publish/accepted.ts";
import type { Runtime } from "../runtime.ts";

export interface NotePublishedDeps extends Pick<Runtime, "now"> {
  /** Counts events by what became of them; never fails. */
  notePublished(results: {
    accepted: number;
    duplicate: number;
    refused: number;
    unavailable: number;
    tookMs: number;
  }): void;
}

/** Publishes, and counts what came of `count` events and how long it took, also where it throws. */
export async function notingPublished(
  deps: NotePublishedDeps,
  count: number,
  publish: () => Promise<(Accepted | AppError)[]>,
): Promise<(Accepted | AppError)[]> {
  const begunAt = deps.now();
  const note = (some: Partial<Record<"accepted" | "duplicate" | "refused" | "unavailable", number>>) =>
    deps.notePublished({
      accepted: 0,
      duplicate: 0,
      refused: 0,
      unavailable: 0,
      ...some,
      tookMs: deps.now() - begunAt,
    });
  try {
    const results = await publish();
    const refused = results.filter((result) => result instanceof AppError).length;
    const duplicate = results.filter((result) => !(result instanceof AppError) && result.duplicate).length;
    note({ refused, duplicate, accepted: results.length - refused - duplicate });
    return results;
  } catch (error) {
    note({ [error instanceof AppError && error.code !== "unavailable" ? "refused" : "unavailable"]: count });
    throw error;
  }
}
