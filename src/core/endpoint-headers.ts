import { ok, refuse, type Result } from "./result.ts";

/**
 * An endpoint's own headers (contract §7 "URLs"): which it may have, which are write-only, and how a change is merged. They
 * are stored as the text of a JSON object, name → value, or name → `{ "wrapped": base64 }` for a write-only one.
 */
export type StoredHeader = { name: string; value: string } | { name: string; wrapped: string };

/** What a change does with one header. `keep` is the redacted text sent back. */
export type HeaderEdit = { name: string; to: "clear" | "keep" | { value: string } | { wrapped: string } };

/** Stands in answers where a write-only value would. */
export const REDACTED = "[redacted]";

export const MAX_HEADERS = 20;
const MAX_VALUE_LENGTH = 1024;

/** RFC 9110 §5.6.2, with a limit of our own. */
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/;
// Spaces inside (`Bearer …`); at the ends they are not part of a field value (RFC 9110 §5.5) and would not arrive.
const VALUE = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;

const RESERVED_PREFIXES = [
  // the relay's own, and those of the body it makes
  "content-",
  "webhook-",
  "x-webhook-",
  "ce-",
  // who is calling, as proxies tell each other; Cloudflare refuses requests that bring its own
  "cf-",
  "x-forwarded-",
  "proxy-",
];

const RESERVED = new Set([
  // hop-by-hop and framing: RFC 9110 §7.6.1, RFC 9113 §8.2.2, RFC 7540 §3.2.1
  "connection",
  "keep-alive",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "http2-settings",
  "alt-used",
  // the request's own target and conduct
  "host",
  "expect",
  "max-forwards",
  "via",
  "user-agent",
  // what the relay reads of an answer must not depend on it
  "accept-encoding",
  "cookie",
  "cookie2",
  "set-cookie",
  "set-cookie2",
  // the caller's address, as `x-forwarded-*`
  "forwarded",
  "x-real-ip",
  "true-client-ip",
]);

const WRITE_ONLY = /authorization|authentication|(^|-)auth(-|$)|token|secret|key|session|passw|passphrase|credential/;

export type NameRefusal = "malformed_name" | "reserved_name";

/**
 * Whether an endpoint may have a header of this name; asked when it is set, and again before every request. What begins with
 * its tenant's `headerPrefix` is the relay's too.
 */
export function checkHeaderName(name: string, headerPrefix: string | null = null): Result<void, NameRefusal> {
  if (!NAME.test(name)) return refuse("malformed_name");
  const key = likeGateways(name);
  const prefixes = headerPrefix === null ? RESERVED_PREFIXES : [...RESERVED_PREFIXES, headerPrefix.toLowerCase()];
  const isReserved = RESERVED.has(key) || prefixes.some((prefix) => key.startsWith(prefix));
  return isReserved ? refuse("reserved_name") : ok(undefined);
}

/** Whether reserved prefixes begin with this text, so that it would take in all of theirs. */
export function isReservedBeginning(text: string): boolean {
  return RESERVED_PREFIXES.some((prefix) => prefix.startsWith(likeGateways(text)));
}

export function isHeaderValue(value: string): boolean {
  return value.length <= MAX_VALUE_LENGTH && VALUE.test(value);
}

/** Headers that let in: their values are stored encrypted and never shown again. */
export function isWriteOnlyHeader(name: string): boolean {
  return WRITE_ONLY.test(likeGateways(name));
}

/** What binds a wrapped value to its place (see `secret-box`). */
export function headerContext(tenantId: string, endpointId: string, name: string): string {
  return `${tenantId}/${endpointId}/header/${name.toLowerCase()}`;
}

/**
 * The headers after a change, merged by name whatever its case: what is not named stays, in its place. `nothing_to_keep`
 * names the header that was sent back redacted though there is none whose value is hidden.
 */
export function mergeHeaders(
  current: readonly StoredHeader[],
  edits: readonly HeaderEdit[],
): Result<StoredHeader[], { reason: "too_many" } | { reason: "nothing_to_keep"; name: string }> {
  const merged = new Map(current.map((header) => [header.name.toLowerCase(), header]));
  for (const { name, to } of edits) {
    const key = name.toLowerCase();
    const before = merged.get(key);
    if (to === "clear") merged.delete(key);
    else if (to !== "keep") merged.set(key, { name, ...to });
    else if (!before || !isHidden(before)) return refuse({ reason: "nothing_to_keep", name });
  }
  return merged.size > MAX_HEADERS ? refuse({ reason: "too_many" }) : ok([...merged.values()]);
}

/** Whether answers show `[redacted]` for it. A plain value that was written straight into the ledger may be a secret too. */
export function isHidden(header: StoredHeader): boolean {
  return "wrapped" in header || isWriteOnlyHeader(header.name);
}

export function formatStoredHeaders(headers: readonly StoredHeader[]): string {
  return JSON.stringify(
    Object.fromEntries(
      headers.map((header) => [header.name, "wrapped" in header ? { wrapped: header.wrapped } : header.value]),
    ),
  );
}

/** Throws when the text is not what `formatStoredHeaders` writes. */
export function parseStoredHeaders(text: string): StoredHeader[] {
  const stored: unknown = JSON.parse(text);
  if (typeof stored !== "object" || stored === null || Array.isArray(stored)) throw new Error("headers are no object");
  return Object.entries(stored).map(([name, value]): StoredHeader => {
    if (typeof value === "string") return { name, value };
    if (typeof value?.wrapped === "string") return { name, wrapped: value.wrapped };
    throw new Error("a header has no value");
  });
}

/** CGI and what descends from it make one name of `X_Api_Key` and `x-api-key`: so must the rules. */
function likeGateways(name: string): string {
  return name.toLowerCase().replaceAll("_", "-");
}
