import { decodeBase64 } from "./base64.ts";
import { concatBytes } from "./bytes.ts";
import { ok, refuse, type Result } from "./result.ts";

/**
 * The headers of a request signed as Standard Webhooks 1.0.0, from the side that verifies:
 * https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 */

/** A request signed longer ago than this, or further ahead, is refused: what was overheard is soon worth nothing. */
export const TIMESTAMP_TOLERANCE_SECONDS = 300;

/** Each costs an HMAC over the whole body for every live key. */
const MAX_SIGNATURES = 4;
const MAX_SIGNATURE_HEADER_LENGTH = 1_024;
const SIGNATURE_BYTES = 32;

// Visible ASCII without a dot: `id.timestamp.body` could be cut in two ways if an id could hold one.
const MESSAGE_ID = /^[\x21-\x2d\x2f-\x7e]{1,128}$/;
// One spelling for each second, so that the number gives back the text that was signed.
const UNIX_SECONDS = /^(0|[1-9]\d{0,11})$/;

export interface SignatureHeaders {
  id: string;
  timestampSeconds: number;
  /** Those of scheme `v1`, decoded; at least one. */
  signatures: Uint8Array[];
}

export type SignatureHeaderFault = "malformed_id" | "malformed_timestamp" | "malformed_signature";

/**
 * Reads `webhook-id`, `webhook-timestamp` and `webhook-signature`. Signatures of other schemes are passed over, as are
 * texts that are no signature; more than four of `v1`, or more than 1,024 characters, are refused unread.
 */
export function parseSignatureHeaders(given: {
  id: string;
  timestamp: string;
  signature: string;
}): Result<SignatureHeaders, SignatureHeaderFault> {
  if (!MESSAGE_ID.test(given.id)) return refuse("malformed_id");
  if (!UNIX_SECONDS.test(given.timestamp)) return refuse("malformed_timestamp");
  const signatures = parseSignatures(given.signature);
  if (!signatures.ok) return signatures;
  return ok({ id: given.id, timestampSeconds: Number(given.timestamp), signatures: signatures.value });
}

function parseSignatures(header: string): Result<Uint8Array[], "malformed_signature"> {
  if (header.length > MAX_SIGNATURE_HEADER_LENGTH) return refuse("malformed_signature");
  const signatures: Uint8Array[] = [];
  for (const part of header.split(" ")) {
    if (!part.startsWith("v1,")) continue;
    const bytes = decodeBase64(part.slice(3));
    if (bytes.ok && bytes.value.length === SIGNATURE_BYTES) signatures.push(bytes.value);
  }
  if (signatures.length === 0 || signatures.length > MAX_SIGNATURES) return refuse("malformed_signature");
  return ok(signatures);
}

export function isTimely(timestampSeconds: number, nowMs: number): boolean {
  return Math.abs(nowMs - timestampSeconds * 1_000) <= TIMESTAMP_TOLERANCE_SECONDS * 1_000;
}

/**
 * What stands in the place of the body when a raw publish is signed. Query and headers are part of its event, so they
 * are signed with it, a line each: the query with its question mark, the content type, the content encoding, empty when
 * there is none. No JSON begins with a question mark, so this never is the body of another route.
 */
export function rawSignedBody(
  request: { query: string; contentType: string; contentEncoding: string },
  body: Uint8Array,
): Uint8Array {
  const lines = [request.query, request.contentType, request.contentEncoding].map((line) => `${line}\n`);
  return concatBytes([new TextEncoder().encode(lines.join("")), body]);
}

/**
 * The idempotency key of an event that was given none. The first of a batch takes the id itself: a request with one event
 * is then the same event as single and as NDJSON, and cannot be replayed as the other. The rest add their place behind a
 * dot, which no id holds.
 */
export function signedIdempotencyKey(messageId: string, index: number): string {
  return index === 0 ? messageId : `${messageId}.${index}`;
}
