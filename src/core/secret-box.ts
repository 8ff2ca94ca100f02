import { decodeBase64 } from "./base64.ts";
import { ok, refuse, type Result } from "./result.ts";

/**
 * Secrets at rest, wrapped with AES-256-GCM (NIST SP 800-38D). A wrapped value is
 *
 *   version (1 byte, = 1) · n (1 byte) · key id (n bytes, ASCII) · iv (12 bytes) · ciphertext · tag (16 bytes)
 *
 * It names its key, so keys can be changed without touching rows. The `context` (which row it belongs to) is bound in as
 * additional authenticated data: a value copied to another row does not unwrap there.
 */

const VERSION = 1;
const KEY_BYTES = 32;
/** Random, and never used twice with one key. */
export const IV_BYTES = 12;
const TAG_BYTES = 16;
const KEY_ID = /^[A-Za-z0-9_-]{1,32}$/;

type SecretsKey = { id: string; bytes: Uint8Array };

/** The first wraps, all unwrap. */
export type SecretsKeys = readonly [SecretsKey, ...SecretsKey[]];

/**
 * The setting `SECRETS_KEY`: `id:base64 of 32 bytes`, several separated by commas, white space around them ignored (a
 * pasted secret often ends in a line break). The reasons never quote the text.
 */
export function parseSecretsKeys(
  text: string,
): Result<SecretsKeys, "malformed_key" | "key_not_32_bytes" | "duplicate_key_id"> {
  const keys: SecretsKey[] = [];
  for (const entry of text.split(",").map((part) => part.trim())) {
    const colon = entry.indexOf(":");
    const id = entry.slice(0, Math.max(colon, 0));
    const bytes = decodeBase64(entry.slice(colon + 1));
    if (!KEY_ID.test(id) || !bytes.ok) return refuse("malformed_key");
    if (bytes.value.length !== KEY_BYTES) return refuse("key_not_32_bytes");
    if (keys.some((key) => key.id === id)) return refuse("duplicate_key_id");
    keys.push({ id, bytes: bytes.value });
  }
  const [first, ...others] = keys;
  return first ? ok([first, ...others]) : refuse("malformed_key");
}

/**
 * Wraps with the first key. `iv` is `IV_BYTES` of randomness; `context` names the row, as in
 * `<tenant>/<endpoint>/<secret>`.
 */
export async function wrapSecret(
  keys: SecretsKeys,
  plain: Uint8Array,
  iv: Uint8Array,
  context: string,
): Promise<Uint8Array> {
  const key = keys[0];
  const sealed = new Uint8Array(
    await crypto.subtle.encrypt(gcm(iv, context), await importKey(key), plain as BufferSource),
  );
  const id = new TextEncoder().encode(key.id);
  const wrapped = new Uint8Array(2 + id.length + iv.length + sealed.length);
  wrapped.set([VERSION, id.length]);
  wrapped.set(id, 2);
  wrapped.set(iv, 2 + id.length);
  wrapped.set(sealed, 2 + id.length + iv.length);
  return wrapped;
}

/**
 * `unknown_key`: wrapped with a key that `SECRETS_KEY` no longer names. `corrupt`: cut short, altered, moved to another
 * row, or the key's bytes were changed under the same id.
 */
export async function unwrapSecret(
  keys: SecretsKeys,
  wrapped: Uint8Array,
  context: string,
): Promise<Result<Uint8Array, "unknown_key" | "corrupt">> {
  const [version, idLength = 0] = wrapped;
  const ivStart = 2 + idLength;
  const sealedStart = ivStart + IV_BYTES;
  if (version !== VERSION || wrapped.length < sealedStart + TAG_BYTES) return refuse("corrupt");
  const id = String.fromCharCode(...wrapped.subarray(2, ivStart));
  const key = keys.find((candidate) => candidate.id === id);
  if (!key) return refuse("unknown_key");
  try {
    const algorithm = gcm(wrapped.slice(ivStart, sealedStart), context);
    return ok(new Uint8Array(await crypto.subtle.decrypt(algorithm, await importKey(key), wrapped.slice(sealedStart))));
  } catch {
    return refuse("corrupt");
  }
}

function gcm(iv: Uint8Array, context: string) {
  return { name: "AES-GCM", iv, additionalData: new TextEncoder().encode(context) };
}

const importedKeys = new WeakMap<SecretsKey, CryptoKey>();

async function importKey(key: SecretsKey): Promise<CryptoKey> {
  const known = importedKeys.get(key);
  if (known) return known;
  const imported = await crypto.subtle.importKey("raw", key.bytes as BufferSource, "AES-GCM", false, [
    "encrypt",
    "decrypt",
  ]);
  // The finished key, not its promise: in a Worker a promise of one request may never settle for another.
  importedKeys.set(key, imported);
  return imported;
}
