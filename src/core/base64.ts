import { ok, refuse, type Result } from "./result.ts";

// RFC 4648 through btoa and atob: `Uint8Array.prototype.toBase64` is in workerd but not in Node 24.

// A multiple of 3, so that only the last chunk is padded; small enough for one call's arguments.
const CHUNK_BYTES = 24_576;
const STANDARD = /^[A-Za-z0-9+/]*={0,2}$/;
const URL_SAFE = /^[A-Za-z0-9_-]*$/;

/** Standard alphabet, padded (RFC 4648 section 4). */
export function encodeBase64(bytes: Uint8Array): string {
  let text = "";
  for (let start = 0; start < bytes.length; start += CHUNK_BYTES) {
    text += btoa(String.fromCharCode(...bytes.subarray(start, start + CHUNK_BYTES)));
  }
  return text;
}

/** Strict inverse of `encodeBase64`: no white space, padding present, unused bits zero, so each value has one spelling. */
export function decodeBase64(text: string): Result<Uint8Array, "malformed_base64"> {
  if (text.length % 4 !== 0 || !STANDARD.test(text)) return refuse("malformed_base64");
  const binary = atob(text);
  const lastQuad = text.slice(-4);
  if (btoa(atob(lastQuad)) !== lastQuad) return refuse("malformed_base64");
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return ok(bytes);
}

/** URL-safe alphabet without padding (RFC 4648 section 5). */
export function encodeBase64Url(bytes: Uint8Array): string {
  return encodeBase64(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** Strict inverse of `encodeBase64Url`. */
export function decodeBase64Url(text: string): Result<Uint8Array, "malformed_base64"> {
  if (!URL_SAFE.test(text) || text.length % 4 === 1) return refuse("malformed_base64");
  const padding = "=".repeat((4 - (text.length % 4)) % 4);
  return decodeBase64(text.replaceAll("-", "+").replaceAll("_", "/") + padding);
}
