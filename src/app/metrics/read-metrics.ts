import { addCounts, type Counts } from "../../core/counts.ts";
import type { Family } from "../../core/exposition.ts";
import { countedFamilies } from "../../core/metric-families.ts";
import type { Runtime } from "../runtime.ts";

interface Bounded {
  count: number;
  isComplete: boolean;
}

/** How the rows of a shard stand. */
export interface Gauges {
  openDeadLetters: Bounded;
  openLanes: Bounded;
  laneHeads: Bounded;
  oldestHeadAt: number | null;
  oldestDueAt: number | null;
}

export interface ReadMetricsDeps extends Pick<Runtime, "now"> {
  shards: string[];
  /** What all isolates have counted, this one's share included. */
  readCounts(shard: string): Promise<{ totals: Counts; tickedAt: number | null }>;
  readGauges(shard: string, now: number): Promise<Gauges>;
  logFault(what: string, error: unknown): void;
}

/**
 * All there is to scrape, summed over the shards: a call of the watchdog and a bounded read of the ledger for each. Of what one of
 * them does not answer there is no sample, since a sum without it would be wrong; `hooklane_shard_up` says which.
 */
export async function readMetrics(deps: ReadMetricsDeps): Promise<Family[]> {
  const now = deps.now();
  const [counts, gauges] = await Promise.all([
    allOf(deps, (shard) => deps.readCounts(shard)),
    allOf(deps, (shard) => deps.readGauges(shard, now)),
  ]);
  const isUp = (i: number) => counts[i] !== null && gauges[i] !== null;
  return [
    ...(isWhole(counts) ? countedFamilies(sum(counts.map(({ totals }) => totals))) : []),
    ...(isWhole(gauges) ? gaugeFamilies(gauges) : []),
    ...(isWhole(counts) ? [lastTick(counts.map(({ tickedAt }) => tickedAt))] : []),
    {
      name: "hooklane_shard_up",
      help: "Whether ledger and watchdog of a shard answered this scrape.",
      type: "gauge",
      samples: deps.shards.map((shard, i) => ({ labels: { shard }, value: isUp(i) ? 1 : 0 })),
    },
  ];
}

function gaugeFamilies(gauges: Gauges[]): Family[] {
  return [
    ...counted(
      "hooklane_dead_letters_open",
      "Dead letters that have no replay",
      gauges.map(({ openDeadLetters }) => openDeadLetters),
    ),
    ...counted(
      "hooklane_lanes_open",
      "Endpoints with open work in a lane",
      gauges.map(({ openLanes }) => openLanes),
    ),
    ...counted(
      "hooklane_lane_heads",
      "Lane keys with open work, each of which has a head",
      gauges.map(({ laneHeads }) => laneHeads),
    ),
    since(
      "hooklane_oldest_lane_head_timestamp_seconds",
      "When the oldest head of a lane that nothing holds was made. No sample: there is none, or there are too many heads.",
      gauges.every(({ laneHeads }) => laneHeads.isComplete) ? earliest(gauges.map((one) => one.oldestHeadAt)) : null,
    ),
    since(
      "hooklane_oldest_due_timestamp_seconds",
      "Since when the first delivery that queues bring is due. No sample: none is.",
      earliest(gauges.map(({ oldestDueAt }) => oldestDueAt)),
    ),
  ];
}

/** A number that is not known exactly is not given as one. */
function counted(name: string, help: string, parts: Bounded[]): Family[] {
  const value = parts.reduce((total, { count }) => total + count, 0);
  const isComplete = parts.every((part) => part.isComplete);
  return [
    { name, help: `${help}. No sample: too many to count.`, type: "gauge", samples: isComplete ? [{ value }] : [] },
    { name: `${name}_at_least`, help: `${help}, as far as they were counted.`, type: "gauge", samples: [{ value }] },
  ];
}

function since(name: string, help: string, at: number | null): Family {
  return { name, help, type: "gauge", samples: at === null ? [] : [{ value: at / 1_000 }] };
}

/** Of the watchdog that is behind the others. */
function lastTick(ticks: (number | null)[]): Family {
  const known = ticks.filter((at) => at !== null);
  return since(
    "hooklane_watchdog_last_tick_timestamp_seconds",
    "When the watchdog of every shard had last done its work, to ten seconds. No sample: not all have.",
    known.length === ticks.length && known.length > 0 ? Math.min(...known) : null,
  );
}

const earliest = (times: (number | null)[]) => {
  const known = times.filter((at) => at !== null);
  return known.length > 0 ? Math.min(...known) : null;
};

function sum(parts: Counts[]): Counts {
  const total: Counts = {};
  for (const part of parts) addCounts(total, part);
  return total;
}

/** Null for a shard that does not answer. */
async function allOf<T>(deps: ReadMetricsDeps, read: (shard: string) => Promise<T>): Promise<(T | null)[]> {
  const answers = await Promise.allSettled(deps.shards.map(read));
  return answers.map((answer) => {
    if (answer.status === "fulfilled") return answer.value;
    deps.logFault("metrics", answer.reason);
    return null;
  });
}

const isWhole = <T>(parts: (T | null)[]): parts is T[] => parts.every((part) => part !== null);
