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
 * without: the receiver, over HTTP, and one trip to the ledger that closes one attempt and claims the next, as a Worker without
 * our code has them right before and after: each alone, and in turn, which takes longer than both alone, since whoever has
 * waited for a receiver is slower than one who is kept busy.
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
        const floorOf = (run: string) => measureFloor(driver, empty, { to: receiver.url + path, bytes, run });
        const before = await floorOf(`${name}-before`);
        const { received, row } = await runBurst(place, context, path, {
          ...load,
          bodies: [batchBody(name, bytes, events)],
        });
        const gaps = Array.from(received.at.subarray(1), (at, n) => at - received.at[n]!);
        const perSecond = 1_000 / summarise(gaps).mean;
        const after = await floorOf(`${name}-after`);
        const receiverMs = (before.receiverMs + after.receiverMs) / 2;
        const tripMs = (before.tripMs + after.tripMs) / 2;
        const inTurnMs = (before.inTurnMs + after.inTurnMs) / 2;
        const ofBound = (ms: number) => round((perSecond * ms) / 1_000, 2);
        rows.push({
          kb: bytes / 1_000,
          "receiver ms": delayMs,
          events,
          "events/s": round(perSecond),
          "gap p50 ms": round(summarise(gaps).p50),
          "gap p99 ms": round(summarise(gaps).p99),
          "with HTTP ms": round(receiverMs, 2),
          "ledger trip ms": round(tripMs, 2),
          "in turn ms": round(inTurnMs, 2),
          "of 1/in turn": ofBound(inTurnMs),
          "of 1/(receiver + trip)": ofBound(receiverMs + tripMs),
          "cpu s/1000": row["cpu s/1000"]!,
        });
      }
    }
    return rows;
  } finally {
    await Promise.all([relay.kill(), empty.kill(), receiver.stop(), driver.stop()]);
  }
};

async function measureFloor(driver: BenchDriver, floor: BenchRelay, of: { to: string; bytes: number; run: string }) {
  const time = async (what: string) => {
    const call = { ...of, run: `${of.run}-${what}`, count: FLOOR_CALLS };
    await timeCall(driver, floor, { ...call, what: "d1-publish-batch" });
    return timeCall(driver, floor, { ...call, what });
  };
  return {
    tripMs: await time("d1-claim-close-batch"),
    receiverMs: await time("fetch"),
    inTurnMs: await time("fetch-then-claim-close"),
  };
}
