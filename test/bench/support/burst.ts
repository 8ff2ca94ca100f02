import type { BenchDriver, Load, LoadResult } from "./driver.ts";
import type { BenchReceiver, Received } from "./receiver.ts";
import type { BenchRelay } from "./relay.ts";
import type { BenchContext, Row } from "./section.ts";
import { round, summarise } from "./table.ts";

/** The three processes of a measurement. */
export interface Place {
  relay: BenchRelay;
  receiver: BenchReceiver;
  driver: BenchDriver;
}

export interface Burst {
  result: LoadResult;
  received: Received;
  accepted: number;
  ackedPerSecond: number;
  /** From the first request until the last event had come. */
  deliveredPerSecond: number;
  row: Row;
}

const QUIET_MS = 10_000;

/** Publishes to whoever is at `path` of the receiver, waits until all has come, and says what each process took for it. */
export async function runBurst(
  { relay, receiver, driver }: Place,
  context: BenchContext,
  path: string,
  load: Load,
): Promise<Burst> {
  await receiver.take();
  const before = { runtime: relay.usage().cpuSeconds, receiver: await receiver.cpuSeconds() };
  const result = await driver.run(load);
  const accepted = result.eventIds.length;
  await receiver.waitFor(path, accepted, QUIET_MS);
  const nothing = { count: 0, at: new Float64Array(), eventIds: [], sinceRelayedMs: new Float64Array() };
  const received = (await receiver.take())[path] ?? nothing;
  const arrived = new Set(received.eventIds).size;
  const runtime = relay.usage();

  const refused = Object.entries(result.statuses).filter(([status]) => status !== "202");
  for (const [status, count] of refused) context.countErrors(`publish answered ${status}`, count);
  context.countErrors("event never arrived", accepted - arrived);
  context.countErrors("event arrived again", received.count - arrived);

  const ackedPerSecond = (accepted * 1_000) / (result.endedAt - result.startedAt);
  const deliveredPerSecond = (arrived * 1_000) / ((received.at.at(-1) ?? NaN) - result.startedAt);
  const ack = summarise(result.ackMs);
  const row = {
    events: accepted,
    "acked/s": round(ackedPerSecond),
    "delivered/s": round(deliveredPerSecond),
    "ack p50 ms": round(ack.p50),
    "ack p99 ms": round(ack.p99),
    "cpu s/1000": round(((runtime.cpuSeconds - before.runtime) / accepted) * 1_000, 2),
    "peak MiB": round(runtime.peakMib, 0),
    "driver cpu s": round(result.cpuSeconds),
    "receiver cpu s": round((await receiver.cpuSeconds()) - before.receiver),
  };
  return { result, received, accepted, ackedPerSecond, deliveredPerSecond, row };
}
