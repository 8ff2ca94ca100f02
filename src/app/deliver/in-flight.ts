/**
 * Bounds on what one isolate has under way: it has 128 MB, and neither an endpoint that hangs nor a tenant with many of them
 * may leave the others without room.
 */
const MAX_REQUESTS = 256;
const MAX_REQUESTS_PER_TENANT = 64;
const MAX_REQUESTS_PER_ENDPOINT = 32;
const MAX_PAYLOAD_BYTES = 32 * 1024 * 1024;

type Place = { tenantId: string; endpointId: string };

/** Counts the requests of an isolate. Shared by all that run in it, so it holds numbers only. */
export interface InFlight {
  /** Takes room for as many of these payloads as fit now, in order, and says how many. */
  reserve(place: Place, payloadSizes: number[]): number;
  release(place: Place, payloadSize: number): void;
}

export function createInFlight(): InFlight {
  let requests = 0;
  let bytes = 0;
  const counts = new Map<string, number>();
  const countOf = (key: string) => counts.get(key) ?? 0;
  const add = (key: string, change: number) => {
    const count = countOf(key) + change;
    if (count > 0) counts.set(key, count);
    else counts.delete(key);
  };
  return {
    reserve({ tenantId, endpointId }, payloadSizes) {
      let reserved = 0;
      for (const size of payloadSizes) {
        if (requests >= MAX_REQUESTS) break;
        if (countOf(tenantId) >= MAX_REQUESTS_PER_TENANT || countOf(endpointId) >= MAX_REQUESTS_PER_ENDPOINT) break;
        // A single payload always fits, whatever its size, or it would wait for ever.
        if (bytes + size > MAX_PAYLOAD_BYTES && requests > 0) break;
        requests++;
        bytes += size;
        add(tenantId, 1);
        add(endpointId, 1);
        reserved++;
      }
      return reserved;
    },
    release({ tenantId, endpointId }, payloadSize) {
      requests--;
      bytes -= payloadSize;
      add(tenantId, -1);
      add(endpointId, -1);
    },
  };
}
