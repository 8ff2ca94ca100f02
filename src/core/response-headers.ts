import { isWriteOnlyHeader } from "./endpoint-headers.ts";
const MAX_BYTES = 4096;
const MAX_REQUEST_ID_CHARACTERS = 256;

const KEPT_ON_SUCCESS = ["content-type", "server", "x-request-id"];
/** What says most about a failure comes first, so that bulk further on cannot push it out. */
const KEPT_FIRST = [...KEPT_ON_SUCCESS, "retry-after", "date", "cf-ray"];

const SECRET_NAMES = ["set-cookie", "cookie", "authorization", "www-authenticate"];

/**
 * The response headers kept with an attempt, as the text of a JSON object: at most 4,096 UTF-8
 * bytes, names in lower case, repeated ones joined by ", ", secrets as `[redacted]`. A header that
 * no longer fits is left out whole.
 * @param success whether the status was 2xx: then only `content-type`, `server`, `x-request-id`
 */
export function keepResponseHeaders(headers: Iterable<[string, string]>, success: boolean): string {
  const byName = joinByName(headers);
  const rest = success ? [] : [...byName.keys()].filter((name) => !KEPT_FIRST.includes(name));
  const first = success ? KEPT_ON_SUCCESS : KEPT_FIRST;

  const members: string[] = [];
  let bytes = "{}".length;
  for (const name of [...first, ...rest]) {
    const value = byName.get(name);
    if (value === undefined) continue;
    const member = `${JSON.stringify(name)}:${JSON.stringify(isSecret(name) ? "[redacted]" : value)}`;
    const memberBytes = utf8Length(member) + (members.length > 0 ? ",".length : 0);
    if (bytes + memberBytes > MAX_BYTES) continue;
    members.push(member);
    bytes += memberBytes;
  }
  return `{${members.join(",")}}`;
}

/** Of one value of the headers that are always kept. */
const MAX_VALUE_CHARACTERS = 4096;
/** Of all the others, names and values. More than what can be kept of them. */
const MAX_CHARACTERS = 16_384;
/** So that a thousand empty ones weigh something. */
const CHARACTERS_PER_HEADER = 8;

/**
 * What is handed on of a receiver's headers, before anybody copies or joins them: those that are always kept, cut at 4,096
 * characters, and of the others as many as come first. The runtime takes hundreds of kilobytes from a receiver.
 */
export function boundResponseHeaders(headers: Iterable<[string, string]>): [string, string][] {
  const bounded: [string, string][] = [];
  let characters = 0;
  for (const [name, value] of headers) {
    if (KEPT_FIRST.includes(name.toLowerCase())) {
      bounded.push([name, value.slice(0, MAX_VALUE_CHARACTERS)]);
      continue;
    }
    const weight = name.length + value.length + CHARACTERS_PER_HEADER;
    if (characters + weight > MAX_CHARACTERS) continue;
    characters += weight;
    bounded.push([name, value]);
  }
  return bounded;
}

/** The receiver's `X-Request-Id`: its visible ASCII, at most 256 characters; null when none is left. */
export function partnerRequestId(value: string | null): string | null {
  const visible = (value ?? "").replace(/[^\x21-\x7e]/g, "");
  return visible === "" ? null : visible.slice(0, MAX_REQUEST_ID_CHARACTERS);
}

function joinByName(headers: Iterable<[string, string]>): Map<string, string> {
  const byName = new Map<string, string>();
  for (const [name, value] of headers) {
    const key = withoutControls(name).toLowerCase();
    const before = byName.get(key);
    const clean = withoutControls(value);
    byName.set(key, before === undefined ? clean : `${before}, ${clean}`);
  }
  return byName;
}

/** JSON would escape them, but SQL that reads a value out of it gets them back, and NUL ends a text there. */
function withoutControls(text: string): string {
  return text.replace(/\p{Cc}/gu, "");
}

function isSecret(name: string): boolean {
  // What an endpoint is sent and no answer shows, its receiver may send back under the same name.
  return SECRET_NAMES.includes(name) || name.startsWith("proxy-") || isWriteOnlyHeader(name);
}

function utf8Length(text: string): number {
  return new TextEncoder().encode(text).length;
}
