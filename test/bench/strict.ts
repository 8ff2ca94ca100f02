import { runBurst } from "./support/burst.ts";
import { batchBody, startDriver, type BenchDriver } from "./support/driver.ts";
import { startFloor, timeCall } from "./support/floor.ts";
import { startReceiver } from "./support/receiver.ts";
import { createTenant, startRelay, subscribe, type BenchRelay } from "./support/relay.ts";
import type { Row, Section } from "./support/section.ts";
import { round, summarise } from "./support/table.ts";

const RECEIVERS_MS = [0, 10, 50];
const FLOOR_CALLS = 40;

/**
 * Events a second of one strict lane with work waiting, by how long its receiver takes. Beside it what an event cannot do
 * without: the receiver, over HTTP, and one trip to the ledger that closes one attempt and claims the next, both as a Worker without
 * our code has them right before and after.
 */
export const strict: Section = async (context) => {
  const { quick } = context;
  const rows: Row[] = [];
  const place = { relay: await startRelay(), receiver: await startReceiver(), driver: startDriver() };
  const { relay, receiver, driver } = place;
  const empty = await startFloor(driver);
  try {
    const { call, key } = await createTenant(relay, "strict");
    for (const bytes of quick ? [1_000] : [1_000, 20_000]) {
      for (const delayMs of RECEIVERS_MS) {
        const name = `strict-${bytes}-${delayMs}`;
        const path = `/${name}`;
        await receiver.behave(path, { delayMs });
        await subscribe({ call }, { url: receiver.url + path, type: name, ordering_mode: "strict" });
        const load = { key, url: `${relay.url}/v1/events/batch`, pace: { concurrency: 1 }, until: { requests: 1 } };
        // What makes the lane and its connection; then a queue of work.
        await runBurst(place, context, path, { ...load, bodies: [batchBody(name, bytes, 3)] });
        const events = quick ? 60 : Math.min(400, delayMs === 0 ? 400 : 8_000 / delayMs);
        const before = await measureFloor(driver, empty, receiver.url + path, `${name}-before`);
        const { received, row } = await runBurst(place, context, path, {
          ...load,
          bodies: [batchBody(name, bytes, events)],
        });
        const gaps = Array.from(received.at.subarray(1), (at, n) => at - received.at[n]!);
        const perSecond = 1_000 / summarise(gaps).mean;
        const after = await measureFloor(driver, empty, receiver.url + path, `${name}-after`);
        const receiverMs = (before.receiverMs + after.receiverMs) / 2;
        const tripMs = (before.tripMs + after.tripMs) / 2;
        const bound = 1_000 / (receiverMs + tripMs);
        rows.push({
          kb: bytes / 1_000,
          "receiver ms": delayMs,
          events,
          "events/s": round(perSecond),
          "gap p50 ms": round(summarise(gaps).p50),
          "gap p99 ms": round(summarise(gaps).p99),
          "with HTTP ms": round(receiverMs, 2),
          "ledger trip ms": round(tripMs, 2),
          "1/(receiver + trip)": round(bound),
          "of it": round(perSecond / bound, 2),
          "cpu s/1000": row["cpu s/1000"]!,
        });
      }
    }
    return rows;
  } finally {
    await Promise.all([relay.kill(), empty.kill(), receiver.stop(), driver.stop()]);
  }
};

async function measureFloor(driver: BenchDriver, floor: BenchRelay, to: string, run: string) {
  await timeCall(driver, floor, { what: "d1-publish-batch", run, count: FLOOR_CALLS });
  const tripMs = await timeCall(driver, floor, { what: "d1-claim-close-batch", run, count: FLOOR_CALLS });
  const receiverMs = await timeCall(driver, floor, { what: "fetch", run, to, count: FLOOR_CALLS });
  return { tripMs, receiverMs };
}
