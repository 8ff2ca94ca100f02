import { checkHeaderName, isReservedBeginning } from "./endpoint-headers.ts";
import { HOP_HEADER } from "./hops.ts";

/**
 * A tenant's `header_prefix`: the relay's own headers go out once more under it, for consumers who know another sender's.
 * Nothing is taken away for it.
 */

/** Words of letters and digits, each ending in a hyphen; `X-` alone would be everybody's. */
export const HEADER_PREFIX = /^(?=.{3,32}$)(?:[A-Za-z0-9]+-)+$/;

const OWN_PREFIXES = ["webhook-", "x-webhook-"];

/** Whether a tenant may have it: no name under it, nor the prefix itself, may be one that endpoints are denied. */
export function isHeaderPrefix(prefix: string): boolean {
  return HEADER_PREFIX.test(prefix) && !isReservedBeginning(prefix) && checkHeaderName(`${prefix}id`).ok;
}

/**
 * Those of `headers` that begin with `webhook-` or `X-Webhook-`, once more with `prefix` in its place, values and order as they
 * are. The count of hops stays alone: it speaks to relays, which know it by one name.
 */
export function repeatUnder(prefix: string | null, headers: readonly [string, string][]): [string, string][] {
  if (prefix === null) return [];
  return headers.flatMap(([name, value]): [string, string][] => {
    const own = OWN_PREFIXES.find((beginning) => name.toLowerCase().startsWith(beginning));
    return own === undefined || name === HOP_HEADER ? [] : [[prefix + name.slice(own.length), value]];
  });
}
