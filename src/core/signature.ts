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
  const head = new TextEncoder().encode(`${message.id}.${message.timestampSeconds}.`);
  const signed = new Uint8Array(head.length + message.body.length);
  signed.set(head);
  signed.set(message.body, head.length);
  const signatures = await Promise.all(keys.map((key) => hmacSha256(key, signed)));
  return signatures.map((signature) => `v1,${encodeBase64(signature)}`).join(" ");
}

async function hmacSha256(key: Uint8Array, data: Uint8Array): Promise<Uint8Array> {
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const imported = await crypto.subtle.importKey("raw", key as BufferSource, algorithm, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign(algorithm, imported, data as BufferSource));
}
