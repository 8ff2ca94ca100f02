import type { ReadMetricsDeps } from "../app/metrics/read-metrics.ts";
import { logFault } from "../log-fault.ts";
import { createGaugeLedger } from "../storage/ledger/gauges.ts";
import { within } from "./bounded.ts";
import { handOver } from "./counts.ts";
import { watchdog } from "./doorbells.ts";
import { runtime } from "./runtime.ts";
import { database, shardsOf } from "./shards.ts";

/** Prometheus gives a scrape ten seconds by default: what answers is told, and what does not is said. */
const LIMIT_MS = 6_000;

/** For `/metrics`. */
export function composeMetrics(env: Env): ReadMetricsDeps {
  /** What this isolate has counted goes in first. */
  async function readCounts(shard: string) {
    await handOver(env, shard, true);
    return watchdog(env, shard).readCounts();
  }
  return {
    ...runtime,
    shards: [...shardsOf(env).keys()],
    readCounts: (shard) => within(LIMIT_MS, readCounts(shard)),
    readGauges: (shard, now) => within(LIMIT_MS, createGaugeLedger(database(env, shard)).readGauges(now)),
    logFault,
  };
}
