/** Bounds on what one isolate has under way: it has 128 MB, and one endpoint that hangs must leave room for the others. */
const MAX_REQUESTS = 256;
const MAX_REQUESTS_PER_ENDPOINT = 32;
const MAX_PAYLOAD_BYTES = 32 * 1024 * 1024;

/** Counts the requests of an isolate. Shared by all that run in it, so it holds numbers only. */
export interface InFlight {
  /** Takes room for as many of these payloads as fit now, in order, and says how many. */
  reserve(endpointId: string, payloadSizes: number[]): number;
  release(endpointId: string, payloadSize: number): void;
}

export function createInFlight(): InFlight {
  let requests = 0;
  let bytes = 0;
  const byEndpoint = new Map<string, number>();
  return {
    reserve(endpointId, payloadSizes) {
      let reserved = 0;
      for (const size of payloadSizes) {
        const ofEndpoint = byEndpoint.get(endpointId) ?? 0;
        if (requests >= MAX_REQUESTS || ofEndpoint >= MAX_REQUESTS_PER_ENDPOINT) break;
        // A single payload always fits, whatever its size, or it would wait for ever.
        if (bytes + size > MAX_PAYLOAD_BYTES && requests > 0) break;
        requests++;
        bytes += size;
        byEndpoint.set(endpointId, ofEndpoint + 1);
        reserved++;
      }
      return reserved;
    },
    release(endpointId, payloadSize) {
      requests--;
      bytes -= payloadSize;
      const left = (byEndpoint.get(endpointId) ?? 1) - 1;
      if (left > 0) byEndpoint.set(endpointId, left);
      else byEndpoint.delete(endpointId);
    },
  };
}
