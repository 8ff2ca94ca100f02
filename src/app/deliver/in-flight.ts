import { roomOf, type Standing } from "../../core/quarantine.ts";

/**
 * Bounds on what one isolate has under way: it has 128 MB, and neither an endpoint that hangs nor a tenant with many of them
 * may leave the others without room. Of each bound retries have half, so that first attempts find room whatever fails.
 */
const MAX_REQUESTS = 256;
const MAX_REQUESTS_PER_TENANT = 64;
const MAX_PAYLOAD_BYTES = 32 * 1024 * 1024;

export type Place = { tenantId: string; endpointId: string };

/** Counts the requests of an isolate. Shared by all that run in it, so it holds numbers only. */
export interface InFlight {
  /** Takes room for as many of these payloads as fit now, in order, and says how many. */
  reserve(place: Place, payloadSizes: number[], isRetry: boolean, now: number): number;
  release(place: Place, payloadSize: number, isRetry: boolean): void;
  /** First attempts of an endpoint that wait for room, so many more or fewer: its retries get none before them. */
  countWaiting(place: Place, change: number): void;
  /** A request has begun. */
  begin(place: Place, at: number): void;
  /** It has ended. `answeredAt` is null when no complete answer came. */
  end(place: Place, startedAt: number, answeredAt: number | null): void;
  /** What is known of an endpoint that has requests under way; null where there are none. */
  standingOf(place: Place): Standing | null;
}

export function createInFlight(): InFlight {
  const all = createCount();
  const retries = createCount();
  const waiting = new Map<string, number>();
  const standings = new Map<string, Standing>();
  return {
    reserve({ tenantId, endpointId }, payloadSizes, isRetry, now) {
      const perEndpoint = roomOf(standings.get(endpointId) ?? null, now);
      const fits = (count: Count, share: number, size: number) =>
        count.requests < MAX_REQUESTS * share &&
        count.of(tenantId) < MAX_REQUESTS_PER_TENANT * share &&
        count.of(endpointId) < perEndpoint * share &&
        // A single payload always fits, whatever its size, or it would wait for ever.
        (count.bytes + size <= MAX_PAYLOAD_BYTES * share || count.requests === 0);
      let reserved = 0;
      for (const size of payloadSizes) {
        if (!fits(all, 1, size)) break;
        if (isRetry && (waiting.has(endpointId) || !fits(retries, 0.5, size))) break;
        for (const count of isRetry ? [all, retries] : [all]) count.add(tenantId, endpointId, 1, size);
        reserved++;
      }
      return reserved;
    },
    release({ tenantId, endpointId }, payloadSize, isRetry) {
      for (const count of isRetry ? [all, retries] : [all]) count.add(tenantId, endpointId, -1, -payloadSize);
    },
    countWaiting: ({ endpointId }, change) => addTo(waiting, endpointId, change),
    begin({ endpointId }, at) {
      const standing = standings.get(endpointId);
      if (standing) standing.startedAt.push(at);
      else standings.set(endpointId, { startedAt: [at], answeredAt: null });
    },
    end({ endpointId }, startedAt, answeredAt) {
      const standing = standings.get(endpointId);
      if (!standing) return;
      standing.startedAt.splice(standing.startedAt.indexOf(startedAt), 1);
      standing.answeredAt = answeredAt ?? standing.answeredAt;
      if (standing.startedAt.length === 0) standings.delete(endpointId);
    },
    standingOf: ({ endpointId }) => standings.get(endpointId) ?? null,
  };
}

type Count = ReturnType<typeof createCount>;

function createCount() {
  const counts = new Map<string, number>();
  const count = {
    requests: 0,
    bytes: 0,
    of: (id: string) => counts.get(id) ?? 0,
    add(tenantId: string, endpointId: string, requests: number, bytes: number) {
      count.requests += requests;
      count.bytes += bytes;
      addTo(counts, tenantId, requests);
      addTo(counts, endpointId, requests);
    },
  };
  return count;
}

/** What has come to nothing is forgotten, or the memory would grow with every id. */
function addTo(counts: Map<string, number>, id: string, change: number): void {
  const count = (counts.get(id) ?? 0) + change;
  if (count > 0) counts.set(id, count);
  else counts.delete(id);
}
