import { decodeBase64Url, encodeBase64 } from "./base64.ts";
import { concatBytes } from "./bytes.ts";
import { signedBytes, type SignedMessage } from "./signature.ts";

/**
 * Standard Webhooks 1.0.0, asymmetric (`v1a`): ed25519 over the same bytes as `v1`. A private key is its seed of 32 bytes
 * (RFC 8032), as it comes out of a source of randomness.
 * https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 */

export const SEED_BYTES = 32;

const PUBLIC_KEY_PREFIX = "whpk_";

/** What stands before the seed in a PKCS #8 key of ed25519 (RFC 8410 section 7). */
const PKCS8_HEAD = Uint8Array.of(0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20);

/** A public key as users see it: `whpk_` and base64 of its 32 bytes. */
export function encodePublicKey(key: Uint8Array): string {
  return PUBLIC_KEY_PREFIX + encodeBase64(key);
}

/** The public half. */
export async function publicKeyOf(seed: Uint8Array): Promise<Uint8Array> {
  const { x } = (await crypto.subtle.exportKey("jwk", await importSeed(seed, true))) as JsonWebKey;
  const decoded = decodeBase64Url(x ?? "");
  if (!decoded.ok) throw new Error("The runtime gave a public key that is none.");
  return decoded.value;
}

/** One `v1a,<base64>` for each key, in the order given. */
export async function signAsSource(seeds: readonly Uint8Array[], message: SignedMessage): Promise<string[]> {
  if (seeds.length === 0) return [];
  const signed = signedBytes(message);
  return Promise.all(
    seeds.map(async (seed) => {
      const key = await importSeed(seed, false);
      const signature = await crypto.subtle.sign("Ed25519", key, signed as BufferSource);
      return `v1a,${encodeBase64(new Uint8Array(signature))}`;
    }),
  );
}

async function importSeed(seed: Uint8Array, isExtractable: boolean): Promise<CryptoKey> {
  if (seed.length !== SEED_BYTES) throw new RangeError(`a seed is ${SEED_BYTES} bytes, not ${seed.length}`);
  const pkcs8 = concatBytes([PKCS8_HEAD, seed]);
  return crypto.subtle.importKey("pkcs8", pkcs8 as BufferSource, "Ed25519", isExtractable, ["sign"]);
}
