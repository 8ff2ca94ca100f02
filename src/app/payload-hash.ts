import { sha256Hex } from "../core/sha256.ts";

/** Whether bytes are the ones that were published. What is not is shown, and signed, to nobody. */
export async function isAsPublished(payload: Uint8Array, expected: string): Promise<boolean> {
  return (await sha256Hex(payload)) === expected;
}
