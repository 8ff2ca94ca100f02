import { ok, refuse, type Result } from "./result.ts";

/**
 * Relays between an event's first publication and this request. A relay whose endpoint is the publish route of a relay, be it
 * another or itself, may make a ring; the count, handed on with each event, is what ends it.
 */
export const HOP_HEADER = "X-Webhook-Hop";
/** A request that says so, or more, is refused: an event goes through this many relays at most. */
export const MAX_HOPS = 4;

/** The count a publish request brings: 0 without the header. */
export function parseHops(header: string | undefined): Result<number, "malformed" | "loop_detected"> {
  if (header === undefined) return ok(0);
  if (!/^\d{1,256}$/.test(header)) return refuse("malformed");
  const hops = Number(header);
  return hops < MAX_HOPS ? ok(hops) : refuse("loop_detected");
}
