import type { Runtime } from "../runtime.ts";

export interface ZeroPayloadDeps extends Pick<Runtime, "sleep" | "random"> {
  /** False when somebody else wrote the object meanwhile, so that nothing was done. */
  zeroPayload(ref: string, size: number): Promise<boolean>;
}

/** R2 takes one write a second to an object: whoever erases neighbours at once waits for a turn. */
const PAUSES_MS = [50, 300, 1_000, 2_000, 4_000];

/** Zeroes a payload's bytes, neighbours in its object left as they are. Throws when that was not confirmed. */
export async function zeroPayload(deps: ZeroPayloadDeps, ref: string, size: number): Promise<void> {
  let fault: unknown;
  for (const pauseMs of [...PAUSES_MS, null]) {
    try {
      if (await deps.zeroPayload(ref, size)) return;
      fault = new Error("others kept writing the object");
    } catch (error) {
      fault = error;
    }
    if (pauseMs !== null) await deps.sleep(pauseMs * (0.5 + deps.random()));
  }
  throw fault;
}
