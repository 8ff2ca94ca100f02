import { batchBody, eventBody, startDriver, type Load } from "./support/driver.ts";
import { startReceiver } from "./support/receiver.ts";
import { createTenant, startRelay, subscribe } from "./support/relay.ts";
import type { BenchContext, Row, Section } from "./support/section.ts";
import { round, summarise } from "./support/table.ts";

const EVENTS_PER_BATCH = 100;
const QUIET_MS = 10_000;

/** Acknowledged and delivered events a second, and what the runtime used for them, by how many producers wait for answers. */
export const throughput: Section = async (context) => {
  const rows: Row[] = [];
  for (const bytes of [1_000, 20_000]) rows.push(...(await measure(context, bytes)));
  return rows;
};

async function measure(context: BenchContext, bytes: number): Promise<Row[]> {
  const seconds = context.quick ? 2 : 10;
  const single = [1, 16, 64, 256].map((concurrency) => ({ concurrency, batch: 1 }));
  // So many requests, since a batch is accepted much faster than it is delivered.
  const batches = [1, 16].map((concurrency) => ({ concurrency, batch: EVENTS_PER_BATCH }));
  const [relay, receiver, driver] = [await startRelay(), await startReceiver(), startDriver()];
  try {
    const { call, key } = await createTenant(relay, "throughput");
    const rows: Row[] = [];
    const load = (batch: number): Omit<Load, "pace" | "until"> => ({
      key,
      url: batch === 1 ? `${relay.url}/v1/events` : `${relay.url}/v1/events/batch`,
      bodies: [batch === 1 ? eventBody("throughput", bytes) : batchBody("throughput", bytes, batch)],
    });
    await subscribe({ call }, { url: `${receiver.url}/throughput`, type: "throughput" });
    await driver.run({ ...load(1), pace: { concurrency: 16 }, until: { seconds: context.quick ? 1 : 3 } });
    await receiver.waitFor("/throughput", Infinity, 1_000);
    for (const { concurrency, batch } of [...single, ...batches]) {
      await receiver.take();
      const before = { runtime: relay.usage().cpuSeconds, receiver: await receiver.cpuSeconds() };
      const until = batch === 1 ? { seconds } : { requests: Math.max(concurrency, context.quick ? 4 : 40) };
      const result = await driver.run({ ...load(batch), pace: { concurrency }, until });
      const accepted = result.eventIds.length;
      await receiver.waitFor("/throughput", accepted, QUIET_MS);
      const received = (await receiver.take())["/throughput"]!;
      const arrived = new Set(received.eventIds).size;
      const runtime = relay.usage();
      const answers = Object.entries(result.statuses).filter(([status]) => status !== "202");
      for (const [status, count] of answers) context.countErrors(`answered ${status}`, count);
      context.countErrors("never arrived", accepted - arrived);
      context.countErrors("arrived again", received.count - arrived);
      const ack = summarise(result.ackMs);
      rows.push({
        kb: bytes / 1_000,
        batch,
        concurrency,
        events: accepted,
        "acked/s": round((accepted * 1_000) / (result.endedAt - result.startedAt)),
        "delivered/s": round((arrived * 1_000) / (received.at.at(-1)! - result.startedAt)),
        "ack p50 ms": round(ack.p50),
        "ack p99 ms": round(ack.p99),
        "cpu s/1000": round(((runtime.cpuSeconds - before.runtime) / accepted) * 1_000, 2),
        "peak MiB": round(runtime.peakMib, 0),
        "driver cpu s": round(result.cpuSeconds),
        "receiver cpu s": round((await receiver.cpuSeconds()) - before.receiver),
      });
    }
    return rows;
  } finally {
    await Promise.all([relay.kill(), receiver.stop(), driver.stop()]);
  }
}
