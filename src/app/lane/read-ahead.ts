import { READ_AHEAD_BYTES } from "../../core/lane.ts";
import { joinPayloadRef, splitPayloadRef } from "../../core/payload-ref.ts";
import type { PayloadReader } from "../deliver/payload-reader.ts";
import type { LoadedDelivery } from "../deliver/prepare.ts";

/**
 * Reads payloads of deliveries that are prepared in this order. Those that lie side by side in one object, as a batch's do, are
 * one read, of READ_AHEAD_BYTES at most; each is kept until it is asked for. A failure is not kept.
 */
export function createReadAhead(read: PayloadReader, deliveries: readonly LoadedDelivery[]): PayloadReader {
  const order = deliveries.map(({ event }) => ({ ref: event.payloadRef, size: event.payloadSize }));
  const kept = new Map<string, Uint8Array>();
  return async (ref, size) => {
    const name = nameOf({ ref, size });
    const known = kept.get(name);
    kept.delete(name);
    // Copies: whoever passes a part on would pass on all of what was read.
    if (known !== undefined) return known.slice();
    const from = order.findIndex((one) => one.ref === ref && one.size === size);
    const together = order.slice(from, from + countTogether(order.slice(from)));
    const bytes = await read(ref, together.length === 0 ? size : sum(together));
    if (bytes === null) return null;
    let start = size;
    for (const next of together.slice(1)) {
      kept.set(nameOf(next), bytes.subarray(start, start + next.size));
      start += next.size;
    }
    return bytes.slice(0, size);
  };
}

interface Part {
  ref: string;
  size: number;
}

/** An empty one begins where the next does. */
const nameOf = ({ ref, size }: Part) => `${ref} ${size}`;

/** How many of these, from the first on, lie side by side and are read at once. */
function countTogether(order: Part[]): number {
  let count = 0;
  let bytes = 0;
  let end: string | null = null;
  for (const { ref, size } of order) {
    bytes += size;
    if (end !== null && (ref !== end || bytes > READ_AHEAD_BYTES)) break;
    const [key, offset] = splitPayloadRef(ref);
    end = joinPayloadRef(key, offset + size);
    count++;
  }
  return count;
}

const sum = (parts: Part[]) => parts.reduce((total, { size }) => total + size, 0);
