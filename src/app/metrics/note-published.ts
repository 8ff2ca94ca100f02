import { AppError } from "../app-error.ts";
import type { Accepted } from "../publish/accepted.ts";
import type { Runtime } from "../runtime.ts";

/** Events of one request, by what became of them. */
export interface PublishCounts {
  accepted: number;
  duplicate: number;
  refused: number;
  unavailable: number;
  /** From when the request was read to its answer. */
  tookMs: number;
}

export interface NotePublishedDeps extends Pick<Runtime, "now"> {
  /** Never fails. */
  notePublished(counts: PublishCounts): void;
}

/** Publishes, and counts what came of `count` events and how long it took, also where it throws. */
export async function notingPublished(
  deps: NotePublishedDeps,
  count: number,
  publish: () => Promise<(Accepted | AppError)[]>,
): Promise<(Accepted | AppError)[]> {
  const begunAt = deps.now();
  const note = (some: Partial<PublishCounts>) =>
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
