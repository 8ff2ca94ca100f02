import type { AttemptLine } from "../app/deliver/attempt-line.ts";
import type { CountKeeper } from "../app/metrics/keep-counts.ts";
import type { PublishCounts } from "../app/metrics/note-published.ts";
import { createTally, type Tally } from "../app/metrics/tally.ts";
import { observed, seriesOf, type Counts } from "../core/counts.ts";
import { ACK, ACK_BOUNDS, ATTEMPTS, ENDED, LAG, LAG_BOUNDS, PUBLISHES } from "../core/metric-families.ts";
import { parseSettings } from "../env.ts";
import { logFault } from "../log-fault.ts";
import { within } from "./bounded.ts";
import { watchdog } from "./doorbells.ts";
import { isolate, runtime } from "./runtime.ts";

/** Counts go to the watchdog this often at most from one isolate; what is counted for the first time waits as long. */
const HAND_OVER_MS = 10_000;
/** The second finds on disk what the first brought, or brings what it could not: work after an answer has thirty seconds. */
const HAND_OVERS = 2;
const OBJECT_LIMIT_MS = 5_000;

/** What this isolate has counted, by shard. */
const tallies = new Map<string, { tally: Tally; handedAt: number; planned: number | null }>();

export interface Counter {
  attempt(line: AttemptLine): void;
  ended(ends: { status: string; finalOutcome: string }[]): void;
  published(results: PublishCounts): void;
}

/** Counts nothing while nobody can look: without METRICS_TOKEN it all costs nothing. */
export function isCounting(env: Env): boolean {
  return parseSettings(env).METRICS_TOKEN !== undefined;
}

/** For what runs after an answer, where waiting costs nothing: hands over within ten seconds of what it counts. */
export function createCounter(env: Env, context: Pick<ExecutionContext, "waitUntil">, shard: string): Counter {
  return counterOf(env, shard, () => planHandOver(env, context, shard));
}

/** For an object, which is paid for while it waits: it hands over when it says so. */
export function createObjectCounter(env: Env, shard: string): Counter {
  return counterOf(env, shard, () => {});
}

function counterOf(env: Env, shard: string, onCount: () => void): Counter {
  const note = (counts: Counts) => {
    if (!isCounting(env)) return;
    ofShard(shard).tally.add(counts);
    onCount();
  };
  const some = (family: string, labels: string[], count: number) =>
    count > 0 && note({ [seriesOf(family, ...labels)]: count });
  return {
    attempt(line) {
      some(ATTEMPTS, [line.outcome_class, line.error_class ?? ""], 1);
      if (line.next !== "retry") some(ENDED, [line.next, line.final_outcome!], 1);
      if (line.lag_ms !== null) note(observed(LAG, LAG_BOUNDS, line.lag_ms));
    },
    ended(ends) {
      for (const { status, finalOutcome } of ends) some(ENDED, [status, finalOutcome], 1);
    },
    published({ tookMs, ...results }) {
      for (const [result, count] of Object.entries(results)) some(PUBLISHES, [result], count);
      note(observed(ACK, ACK_BOUNDS, tookMs));
    },
  };
}

function planHandOver(env: Env, context: Pick<ExecutionContext, "waitUntil">, shard: string): void {
  const own = ofShard(shard);
  const now = runtime.now();
  // What was to do it may have been cut off; and a clock that went back must not put it off until it has caught up.
  if (own.planned !== null && Math.abs(own.planned - now) < 2 * HAND_OVER_MS) return;
  own.planned = now + HAND_OVER_MS;
  const handOverSoon = async () => {
    for (let n = 0; n < HAND_OVERS && own.tally.hasMore(); n++) {
      own.planned = runtime.now() + HAND_OVER_MS;
      await runtime.sleep(HAND_OVER_MS);
      const comesAgain = n + 1 < HAND_OVERS;
      // What is counted while the last is on its way is somebody else's to hand over.
      if (!comesAgain) own.planned = null;
      await handOver(env, shard, comesAgain);
    }
    if (!own.tally.hasMore()) own.planned = null;
  };
  context.waitUntil(handOverSoon());
}

/** Gives the watchdog what it has not on disk. Never fails: what it does not take is offered again. */
export async function handOver(env: Env, shard: string, comesAgain: boolean): Promise<void> {
  await offer(shard, (isolateId, batches) =>
    within(OBJECT_LIMIT_MS, watchdog(env, shard).takeCounts(isolateId, batches, comesAgain)),
  );
}

/** For an object at the end of what it does; `isIdle` when nothing of it is left under way. */
export async function handOverFromObject(env: Env, shard: string, isIdle: boolean): Promise<void> {
  const isTimely = Math.abs(runtime.now() - ofShard(shard).handedAt) < HAND_OVER_MS;
  if (isCounting(env) && (isIdle || !isTimely)) await handOver(env, shard, false);
}

/** The watchdog's own: it needs no call for them. */
export async function keepOwn(shard: string, keeper: CountKeeper): Promise<void> {
  await offer(shard, (...offered) => keeper.take(...offered));
}

async function offer(shard: string, take: CountKeeper["take"]): Promise<void> {
  const own = ofShard(shard);
  if (!own.tally.hasMore()) return;
  own.handedAt = runtime.now();
  try {
    own.tally.confirm(await take(isolate(), own.tally.offer()));
  } catch (error) {
    logFault("hand over counts", error);
  }
}

function ofShard(shard: string) {
  let own = tallies.get(shard);
  if (!own) tallies.set(shard, (own = { tally: createTally(), handedAt: 0, planned: null }));
  return own;
}
