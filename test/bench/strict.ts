import { runBurst } from "./support/burst.ts";
import { batchBody, startDriver } from "./support/driver.ts";
import { startReceiver } from "./support/receiver.ts";
import { createTenant, startRelay, subscribe } from "./support/relay.ts";
import type { Row, Section } from "./support/section.ts";
import { round, summarise } from "./support/table.ts";

const RECEIVERS_MS = [0, 10, 50];

/**
 * Events a second of one strict lane with work waiting, by how long its receiver takes. Beside it what an event cannot do
 * without: the receiver, over HTTP, and one trip to the ledger, both as the floor of this run has them.
 */
export const strict: Section = async (context) => {
  const { quick, shared } = context;
  const rows: Row[] = [];
  const place = { relay: await startRelay(), receiver: await startReceiver(), driver: startDriver() };
  const { relay, receiver, driver } = place;
  try {
    const { call, key } = await createTenant(relay, "strict");
    const tripMs = shared.get("d1-claim-close-batch ms") ?? NaN;
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
        const { received, row } = await runBurst(place, context, path, {
          ...load,
          bodies: [batchBody(name, bytes, events)],
        });
        const gaps = Array.from(received.at.subarray(1), (at, n) => at - received.at[n]!);
        const perSecond = 1_000 / summarise(gaps).mean;
        const receiverMs = shared.get(`fetch ${delayMs} ms`) ?? NaN;
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
    if (Number.isNaN(tripMs)) context.note("The floor was not measured in this run: add --only=floor,strict");
    return rows;
  } finally {
    await Promise.all([relay.kill(), receiver.stop(), driver.stop()]);
  }
};
