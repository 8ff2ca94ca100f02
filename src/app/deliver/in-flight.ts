import { roomOf, type Standing } from "../../core/quarantine.ts";

/**
 * Bounds on what one isolate has under way: it has 128 MB, and neither an endpoint that hangs nor a tenant with many of them
 * may leave the others without room. Of each bound retries have half, so that first attempts find room whatever fails.
 */
const MAX_REQUESTS = 256;
const MAX_REQUESTS_PER_TENANT = 64;
const MAX_PAYLOAD_BYTES = 32 * 1024 * 1024;

export type Place = { tenantId: string; endpointId: string };
/** What is known is known of a URL: one that an endpoint is given owes nothing to the one before it. */
export type Receiver = Place & { endpoint: { url: string } };

/** Counts the requests of an isolate. Shared by all that run in it, so it holds numbers only. */
export interface InFlight {
  /** Takes room for as many of these payloads as fit now, in order, and says how many. */
  reserve(place: Receiver, payloadSizes: number[], isRetry: boolean, now: number): number;
  release(place: Receiver, payloadSize: number, isRetry: boolean): void;
  /** First attempts of an endpoint that wait for room, so many more or fewer: its retries get none before them. */
  countWaiting(place: Receiver, change: number): void;
  /** A request has begun. */
  begin(place: Receiver, at: number): void;
  /** It has ended. `answeredAt` is null when no complete answer came. */
  end(place: Receiver, startedAt: number, answeredAt: number | null): void;
  /** What is known of an endpoint that has requests under way; null where there are none. */
  standingOf(place: Receiver): Standing | null;
}

export function createInFlight(): InFlight {
  const all = createCount();
  const retries = createCount();
  const waiting = new Map<string, number>();
  const standings = new Map<string, Standing>();
  return {
    reserve({ tenantId, ...place }, payloadSizes, isRetry, now) {
      const receiver = keyOf(place);
      const perEndpoint = roomOf(standings.get(receiver) ?? null, now);
      const fits = (count: Count, share: number, size: number) =>
        count.requests < MAX_REQUESTS * share &&
        count.of(tenantId) < MAX_REQUESTS_PER_TENANT * share &&
        count.of(receiver) < perEndpoint * share &&
        // A single payload always fits, whatever its size, or it would wait for ever.
        (count.bytes + size <= MAX_PAYLOAD_BYTES * share || count.requests === 0);
      let reserved = 0;
      for (const size of payloadSizes) {
        if (!fits(all, 1, size)) break;
        if (isRetry && (waiting.has(receiver) || !fits(retries, 0.5, size))) break;
        for (const count of isRetry ? [all, retries] : [all]) count.add(tenantId, receiver, 1, size);
        reserved++;
      }
      return reserved;
    },
    release({ tenantId, ...place }, payloadSize, isRetry) {
      for (const count of isRetry ? [all, retries] : [all]) count.add(tenantId, keyOf(place), -1, -payloadSize);
    },
    countWaiting: (place, change) => addTo(waiting, keyOf(place), change),
    begin(place, at) {
      const standing = standings.get(keyOf(place));
      if (standing) standing.startedAt.push(at);
      else standings.set(keyOf(place), { startedAt: [at], answeredAt: null });
    },
    end(place, startedAt, answeredAt) {
      const standing = standings.get(keyOf(place));
      if (!standing) return;
      standing.startedAt.splice(standing.startedAt.indexOf(startedAt), 1);
      standing.answeredAt = answeredAt ?? standing.answeredAt;
      if (standing.startedAt.length === 0) standings.delete(keyOf(place));
    },
    standingOf: (place) => standings.get(keyOf(place)) ?? null,
  };
}

const keyOf = ({ endpointId, endpoint }: Omit<Receiver, "tenantId">) => `${endpointId} ${endpoint.url}`;

type Count = ReturnType<typeof createCount>;

function createCount() {
  const counts = new Map<string, number>();
  const count = {
    requests: 0,
    bytes: 0,
    of: (id: string) => counts.get(id) ?? 0,
    add(tenantId: string, receiver: string, requests: number, bytes: number) {
      count.requests += requests;
      count.bytes += bytes;
      addTo(counts, tenantId, requests);
      addTo(counts, receiver, requests);
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
