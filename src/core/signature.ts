import { decodeBase64, encodeBase64 } from "./base64.ts";
import { ok, refuse, type Result } from "./result.ts";

/**
 * Standard Webhooks 1.0.0, symmetric (`v1`):
 * https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 */

const SECRET_PREFIX = "whsec_";

export type SignedMessage = {
  /** `webhook-id`. */
  id: string;
  /** `webhook-timestamp`: Unix seconds of this attempt. */
  timestampSeconds: number;
  /** Exactly the bytes that are sent; never decoded to text. */
  body: Uint8Array;
};

/** A key as users see it: `whsec_` and base64 of its bytes. */
export function encodeSigningSecret(key: Uint8Array): string {
  return SECRET_PREFIX + encodeBase64(key);
}

/** The key bytes of a `whsec_…` secret. Any length but 0: older senders made keys shorter than the 24 bytes now asked for. */
export function decodeSigningSecret(secret: string): Result<Uint8Array, "malformed_secret"> {
  if (!secret.startsWith(SECRET_PREFIX)) return refuse("malformed_secret");
  const key = decodeBase64(secret.slice(SECRET_PREFIX.length));
  return key.ok && key.value.length > 0 ? ok(key.value) : refuse("malformed_secret");
}

/**
 * The value of `webhook-signature`: one `v1,<base64>` for each key, in the order given, joined by spaces. HMAC-SHA256 over
 * `<id>.<timestamp>.` and the body. Keys are as `decodeSigningSecret` gives them, never empty.
 */
export async function signWebhook(keys: readonly Uint8Array[], message: SignedMessage): Promise<string> {
  const signed = signedBytes(message);
  const signatures = await Promise.all(keys.map((key) => hmacSha256(key, signed)));
  return signatures.map((signature) => `v1,${encodeBase64(signature)}`).join(" ");
}

/**
 * Whether one of the signatures (32 bytes each) is the key's. All are looked at, each in constant time, so that the time
 * it takes says nothing about how near a wrong one came.
 */
export async function isSignedWith(
  key: Uint8Array,
  message: SignedMessage,
  signatures: readonly Uint8Array[],
): Promise<boolean> {
  const signed = signedBytes(message);
  const imported = await crypto.subtle.importKey("raw", key as BufferSource, HMAC_SHA256, false, ["verify"]);
  const checks = signatures.map((signature) =>
    crypto.subtle.verify(HMAC_SHA256, imported, signature as BufferSource, signed as BufferSource),
  );
  return (await Promise.all(checks)).includes(true);
}

const HMAC_SHA256 = { name: "HMAC", hash: "SHA-256" };

/** What is signed, whatever the scheme. */
export function signedBytes(message: SignedMessage): Uint8Array {
  const head = new TextEncoder().encode(`${message.id}.${message.timestampSeconds}.`);
  const signed = new Uint8Array(head.length + message.body.length);
  signed.set(head);
  signed.set(message.body, head.length);
  return signed;
}

async function hmacSha256(key: Uint8Array, data: Uint8Array): Promise<Uint8Array> {
  const imported = await crypto.subtle.importKey("raw", key as BufferSource, HMAC_SHA256, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign(HMAC_SHA256, imported, data as BufferSource));
}
