import { z } from "zod";
import { encodeBase64 } from "../../core/base64.ts";
import {
  checkHeaderName,
  headerContext,
  isHeaderValue,
  isWriteOnlyHeader,
  MAX_HEADERS,
  mergeHeaders,
  REDACTED,
  type HeaderEdit,
  type StoredHeader,
} from "../../core/endpoint-headers.ts";
import { IV_BYTES, wrapSecret } from "../../core/secret-box.ts";
import { invalidField } from "../app-error.ts";
import type { EndpointDeps } from "./deps.ts";

const MESSAGES = {
  malformed_name: "must be a header name: 1 to 128 letters, digits and !#$%&'*+-.^_`|~",
  reserved_name: "is a header that the relay sets itself, or that is not an endpoint's to set",
  malformed_value: "must be 1 to 1024 visible ASCII characters, with no more than spaces between them",
  given_twice: "is given twice: case makes no difference",
  too_many: `an endpoint has at most ${MAX_HEADERS} headers`,
  nothing_to_keep: `${REDACTED} keeps a hidden value, and there is none: give the value`,
};

/** A map, name → value; null clears one. */
export const HeadersInput = z
  // Records pass over this key, and what is given must not be passed over.
  .preprocess(
    (value, context) => {
      if (typeof value === "object" && value !== null && Object.hasOwn(value, "__proto__")) {
        context.addIssue({ code: "custom", path: ["__proto__"], message: MESSAGES.reserved_name });
      }
      return value;
    },
    z.record(z.string(), z.string().nullable()),
  )
  .superRefine((headers, context) => {
    const seen = new Set<string>();
    for (const [name, value] of Object.entries(headers)) {
      const message = complaint(name, value, seen);
      if (message !== null) context.addIssue({ code: "custom", path: [name], message });
      seen.add(name.toLowerCase());
    }
  });
export type HeadersInput = z.infer<typeof HeadersInput>;

function complaint(name: string, value: string | null, seen: ReadonlySet<string>): string | null {
  if (seen.has(name.toLowerCase())) return MESSAGES.given_twice;
  if (value === null) return null;
  const checked = checkHeaderName(name);
  if (!checked.ok) return MESSAGES[checked.error];
  return isHeaderValue(value) ? null : MESSAGES.malformed_value;
}

/** What a request says of an endpoint's headers, ready to be merged: `null` clears all there are. */
export type HeaderChange = HeaderEdit[] | null;

/** The values that nobody is to read again are wrapped here, for the place where they will stand. */
export async function toHeaderChange(
  deps: Pick<EndpointDeps, "randomBytes" | "secretsKeys"> & {
    endpoints: Pick<EndpointDeps["endpoints"], "findHeaderPrefix">;
  },
  place: { tenantId: string; endpointId: string },
  input: HeadersInput | null,
): Promise<HeaderChange> {
  if (input === null) return null;
  const entries = Object.entries(input);
  if (entries.filter(([, value]) => value !== null).length > MAX_HEADERS) {
    throw invalidField("headers", MESSAGES.too_many);
  }
  const set = entries.flatMap(([name, value]) => (value === null ? [] : name));
  if (set.length > 0) refuseUnder(await deps.endpoints.findHeaderPrefix(place.tenantId), set);
  return Promise.all(
    entries.map(async ([name, value]): Promise<HeaderEdit> => {
      if (value === null) return { name, to: "clear" };
      if (value === REDACTED) return { name, to: "keep" };
      if (!isWriteOnlyHeader(name)) return { name, to: { value } };
      const iv = new Uint8Array(deps.randomBytes(IV_BYTES));
      const context = headerContext(place.tenantId, place.endpointId, name);
      const wrapped = await wrapSecret(deps.secretsKeys, new TextEncoder().encode(value), iv, context);
      return { name, to: { wrapped: encodeBase64(wrapped) } };
    }),
  );
}

/** Where the tenant has a prefix for the relay's own headers, no endpoint may have another under it. */
function refuseUnder(headerPrefix: string | null, names: string[]): void {
  const refused = names.find((name) => !checkHeaderName(name, headerPrefix).ok);
  if (refused !== undefined) throw invalidField(`headers.${refused}`, MESSAGES.reserved_name);
}

/** The headers as the change leaves them; refuses one that leaves too many, or keeps what is not there. */
export function changeHeaders(current: readonly StoredHeader[], change: HeaderChange): StoredHeader[] {
  if (change === null) return [];
  const merged = mergeHeaders(current, change);
  if (merged.ok) return merged.value;
  const { error } = merged;
  const path = error.reason === "nothing_to_keep" ? `headers.${error.name}` : "headers";
  throw invalidField(path, MESSAGES[error.reason]);
}
