import { toHex } from "../core/hex.ts";

/** Whether bytes are the ones that were published. What is not is shown, and signed, to nobody. */
export async function isAsPublished(payload: Uint8Array, sha256Hex: string): Promise<boolean> {
  const digest = await crypto.subtle.digest("SHA-256", payload as BufferSource);
  return toHex(new Uint8Array(digest)) === sha256Hex;
}
