import { nextStartAt } from "./lane-pace.ts";

/** The first open delivery of one lane key, as the ledger had it. Times in ms since 1970 UTC. */
export interface LaneHead {
  laneKey: string;
  status: "pending" | "processing";
  nextAttemptAt: number;
  /** When the lease of a head in flight ends. */
  lockedUntil: number | null;
  blocked: boolean;
  /** Not before this, because of a fault of ours; null when there was none. */
  notBefore: number | null;
  /** What it will have in memory at most: see peakPayloadBytes. */
  payloadBytes: number;
}

export interface LaneLimits {
  concurrencyCap: number;
  ratePerSecond: number | null;
  /** Payloads in memory by what is under way. */
  heldBytes: number;
}

/** A lane has no more payloads than this in memory, but that one request is always let through; an isolate has many lanes. */
export const MAX_HELD_BYTES = 32 * 1024 * 1024;

/** Payloads that lie side by side are read at once up to this, for deliveries of one key that go one after the other. */
export const READ_AHEAD_BYTES = 256 * 1024;

/**
 * The most that a key has in memory while its deliveries go one after the other, each with the next prepared behind it, and
 * with what is read ahead.
 */
export function peakPayloadBytes(sizes: number[]): number {
  const inTurn = Math.max(...sizes.map((size, i) => size + (sizes[i + 1] ?? 0)));
  const ahead = sizes.slice(1).reduce((sum, size) => sum + (size < READ_AHEAD_BYTES ? size : 0), 0);
  return inTurn + Math.min(ahead, READ_AHEAD_BYTES);
}

/** What an operator may have changed. `pausedAt` also while its tenant is suspended. */
interface LaneStanding {
  revision: number;
  laneGeneration: number;
  pausedAt: number | null;
  disabledAt: number | null;
  deletedAt: number | null;
}

/**
 * Where nothing orders them, the keys of retries begin with this and sort behind those of first attempts, which begin with
 * the space alone. No ordering key holds a space.
 */
export const RETRY_KEY_PREFIX = "~ ";

const DEFAULT_CONCURRENCY = 16;

const LEASE_CHECK_MS = 5_000;

/**
 * Which heads to start now, in their order, and when to look again. Heads in flight take their share of the cap, whoever
 * started them; `starts` are the moments of the last requests. `rest` could start but for cap, rate and memory, in which
 * nothing small goes before something large. `wakeAt` is null when
 * only a wake or the end of a request can change anything.
 */
export function selectRunnable(
  heads: LaneHead[],
  limits: LaneLimits,
  starts: number[],
  now: number,
): { start: LaneHead[]; rest: LaneHead[]; wakeAt: number | null } {
  const start: LaneHead[] = [];
  const rest: LaneHead[] = [];
  const wakes: number[] = [];
  let inFlight = heads.filter(({ status }) => status === "processing").length;
  let { heldBytes } = limits;
  let hasMemory = true;
  const taken = [...starts];
  for (const head of heads) {
    if (head.status === "processing") {
      // Somebody else's: it may end without a word, and one whose lease has ended may not be taken back yet.
      if (head.lockedUntil !== null) {
        const checkAt = now + LEASE_CHECK_MS;
        wakes.push(head.lockedUntil > now ? Math.min(head.lockedUntil, checkAt) : checkAt);
      }
      continue;
    }
    if (head.blocked) continue;
    const dueAt = Math.max(head.nextAttemptAt, head.notBefore ?? 0);
    const rateAt = nextStartAt(limits.ratePerSecond, taken, now);
    if (dueAt <= now) hasMemory &&= heldBytes === 0 || heldBytes + head.payloadBytes <= MAX_HELD_BYTES;
    if (dueAt > now) wakes.push(dueAt);
    else if (inFlight >= limits.concurrencyCap || !hasMemory) rest.push(head);
    else if (rateAt > now) {
      wakes.push(rateAt);
      rest.push(head);
    } else {
      start.push(head);
      heldBytes += head.payloadBytes;
      taken.push(now);
      inFlight++;
    }
  }
  return { start, rest, wakeAt: wakes.length > 0 ? Math.min(...wakes) : null };
}

/** How many requests a lane has under way at most. Many lanes share an isolate's memory. */
export function capacityOf(settings: {
  orderingMode: "unordered" | "strict" | "keyed";
  concurrencyCap: number | null;
}): number {
  return settings.orderingMode === "strict" ? 1 : (settings.concurrencyCap ?? DEFAULT_CONCURRENCY);
}

/** Whether a claim that was proved a while ago would still be: neither the endpoint nor its tenant has been changed since. */
export function isAsClaimed(
  settings: LaneStanding | null,
  { revision, generation }: { revision: number; generation: number },
): boolean {
  return (
    settings !== null &&
    settings.revision === revision &&
    settings.laneGeneration === generation &&
    settings.pausedAt === null &&
    settings.disabledAt === null &&
    settings.deletedAt === null
  );
}

/**
 * Work goes through a lane where something holds it to an order or a limit, or may take longer than a queue's consumer; and
 * while its endpoint is in quarantine.
 */
export function routeOf(endpoint: {
  orderingMode: "unordered" | "strict" | "keyed";
  concurrencyCap: number | null;
  rateLimitPerSecond: number | null;
  timeoutMs: number;
  quarantinedAt: number | null;
}): "queue" | "lane" {
  const { orderingMode, concurrencyCap, rateLimitPerSecond, timeoutMs, quarantinedAt } = endpoint;
  const isFree = orderingMode === "unordered" && concurrencyCap === null && rateLimitPerSecond === null;
  return isFree && timeoutMs <= MAX_QUEUE_TIMEOUT_MS && quarantinedAt === null ? "queue" : "lane";
}

/** What goes on after an acknowledged queue batch is only sure to run about this long. */
const MAX_QUEUE_TIMEOUT_MS = 20_000;
