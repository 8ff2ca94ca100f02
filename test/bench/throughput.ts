import { runBurst } from "./support/burst.ts";
import { batchBody, eventBody, startDriver, type Load } from "./support/driver.ts";
import { startReceiver } from "./support/receiver.ts";
import { createTenant, startRelay, subscribe } from "./support/relay.ts";
import type { BenchContext, Row, Section } from "./support/section.ts";

const EVENTS_PER_BATCH = 100;

/** Acknowledged and delivered events a second, and what the runtime used for them, by how many producers wait for answers. */
export const throughput: Section = async (context) => {
  const rows: Row[] = [];
  for (const bytes of context.quick ? [1_000] : [1_000, 20_000]) rows.push(...(await measure(context, bytes)));
  return rows;
};

/** Of how many producers at once, how much: single ones for a while, batches so many, since they are taken faster than delivered. */
function listBursts({ quick }: BenchContext): { concurrency: number; batch: number; until: Load["until"] }[] {
  if (quick) {
    const singles = [1, 64].map((concurrency) => ({
      concurrency,
      batch: 1,
      until: { seconds: 1 },
    }));
    return [...singles, { concurrency: 1, batch: EVENTS_PER_BATCH, until: { requests: 3 } }];
  }
  const singles = [1, 16, 64, 256].map((concurrency) => ({ concurrency, batch: 1, until: { seconds: 8 } }));
  const batches = [1, 16].map((concurrency) => ({ concurrency, batch: EVENTS_PER_BATCH, until: { requests: 20 } }));
  return [...singles, ...batches];
}

async function measure(context: BenchContext, bytes: number): Promise<Row[]> {
  const place = { relay: await startRelay(), receiver: await startReceiver(), driver: startDriver() };
  const { relay, receiver, driver } = place;
  try {
    const { call, key } = await createTenant(relay, "throughput");
    await subscribe({ call }, { url: `${receiver.url}/throughput`, type: "throughput" });
    const loadOf = (batch: number) =>
      batch === 1
        ? { key, url: `${relay.url}/v1/events`, bodies: [eventBody("throughput", bytes)] }
        : { key, url: `${relay.url}/v1/events/batch`, bodies: [batchBody("throughput", bytes, batch)] };
    await runBurst(place, context, "/throughput", {
      ...loadOf(1),
      pace: { concurrency: 16 },
      until: { requests: context.quick ? 50 : 500 },
    });
    const rows: Row[] = [];
    for (const { concurrency, batch, until } of listBursts(context)) {
      const load = { ...loadOf(batch), pace: { concurrency }, until };
      const { row } = await runBurst(place, context, "/throughput", load);
      rows.push({ kb: bytes / 1_000, batch, concurrency, ...row });
    }
    return rows;
  } finally {
    await Promise.all([relay.kill(), receiver.stop(), driver.stop()]);
  }
}
