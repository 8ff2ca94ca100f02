import { ok, refuse, type Result } from "./result.ts";

// Regular expressions rather than predicates, so that request schemas can publish them as OpenAPI `pattern`s.

/** A source's `name`; sent as the header `X-Webhook-Source`. `hooklane` is the relay's own (`RELAY_SOURCE_NAME`). */
export const SOURCE_NAME = /^(?!hooklane$)[a-z0-9][a-z0-9_-]{0,62}$/;

/** `idempotency_key` and `ordering_key`: 1–256 visible ASCII characters; the latter becomes a header. */
export const EVENT_KEY = /^[\x21-\x7e]{1,256}$/;

/** A word of an entitlement: a scope token of RFC 6749 §3.3. */
export const SCOPE_WORD = /^[\x21\x23-\x5b\x5d-\x7e]{1,128}$/;

/** Such words, each behind one space. */
export const ENTITLEMENT_SCOPE = /^(?=.{1,1024}$)[\x21\x23-\x5b\x5d-\x7e]{1,128}(?: [\x21\x23-\x5b\x5d-\x7e]{1,128})*$/;

export function toWords(entitlementScope: string | null): string[] {
  return entitlementScope === null ? [] : entitlementScope.split(" ");
}

// An RFC 8941 section 3.3.3 string: printable ASCII in quotes, in which only `"` and `\` are escaped.
const QUOTED = /^"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"$/;

/** A key of 256 characters, every one of them escaped, in quotes, and room for white space. */
const MAX_HEADER_LENGTH = 1_024;

/**
 * The key in an `Idempotency-Key` header, quoted (an RFC 8941 string, as draft-ietf-httpapi-idempotency-key-header says) or
 * bare, as most clients send it. A value that opens with a quote must be a whole quoted string, without parameters.
 */
export function parseIdempotencyKeyHeader(value: string): Result<string, "malformed_idempotency_key"> {
  // A search for white space at the end takes time in the square of a long run of it elsewhere.
  if (value.length > MAX_HEADER_LENGTH) return refuse("malformed_idempotency_key");
  const trimmed = value.replace(/^[ \t]+|[ \t]+$/g, "");
  const key = trimmed.startsWith('"') ? QUOTED.exec(trimmed)?.[1]?.replace(/\\(.)/g, "$1") : trimmed;
  return key !== undefined && EVENT_KEY.test(key) ? ok(key) : refuse("malformed_idempotency_key");
}
