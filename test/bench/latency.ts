import { runBurst } from "./support/burst.ts";
import { eventBody, lagsOf, startDriver } from "./support/driver.ts";
import { startReceiver } from "./support/receiver.ts";
import { createTenant, startRelay, subscribe } from "./support/relay.ts";
import type { BenchContext, Row, Section } from "./support/section.ts";
import { round, summarise } from "./support/table.ts";

/**
 * How long a producer waits for its answer, and how long after that the consumer gets the request, when events come at a rate
 * that does not ask whether the relay keeps up. Beyond what it can do both grow with the time it lasts: `kept` says so.
 */
export const latency: Section = async (context) => {
  const rows: Row[] = [];
  for (const bytes of context.quick ? [1_000] : [1_000, 20_000]) rows.push(...(await measure(context, bytes)));
  return rows;
};

/** The less a rate is likely to be kept, the shorter: what has come is delivered in any case. */
function listRates({ quick }: BenchContext): { perSecond: number; seconds: number }[] {
  if (!quick) return [50, 200, 500].map((perSecond) => ({ perSecond, seconds: Math.min(20, 2_500 / perSecond) }));
  return [50, 200, 500].map((perSecond) => ({
    perSecond,
    seconds: Math.min(3, 250 / perSecond),
  }));
}

async function measure(context: BenchContext, bytes: number): Promise<Row[]> {
  const place = { relay: await startRelay(), receiver: await startReceiver(), driver: startDriver() };
  const { relay, receiver, driver } = place;
  try {
    const { call, key } = await createTenant(relay, "latency");
    await subscribe({ call }, { url: `${receiver.url}/latency`, type: "latency" });
    const load = { key, url: `${relay.url}/v1/events`, bodies: [eventBody("latency", bytes)] };
    const warmUp = { ...load, pace: { concurrency: 4 }, until: { requests: context.quick ? 40 : 200 } };
    await runBurst(place, context, "/latency", warmUp);
    const rows: Row[] = [];
    for (const { perSecond, seconds } of listRates(context)) {
      const pace = { perSecond };
      const burst = await runBurst(place, context, "/latency", { ...load, pace, until: { seconds } });
      const { result, received, row } = burst;
      const ack = summarise(result.ackMs);
      const lag = summarise(lagsOf(result, received).filter((ms) => !Number.isNaN(ms)));
      rows.push({
        kb: bytes / 1_000,
        "per second": perSecond,
        seconds: round(seconds),
        kept: burst.ackedPerSecond > 0.9 * perSecond && burst.deliveredPerSecond > 0.9 * perSecond ? "yes" : "no",
        "ack p50 ms": round(ack.p50),
        "ack p95 ms": round(ack.p95),
        "ack p99 ms": round(ack.p99),
        "lag p50 ms": round(lag.p50),
        "lag p95 ms": round(lag.p95),
        "lag p99 ms": round(lag.p99),
        "cpu s/1000": row["cpu s/1000"]!,
        "driver late p99 ms": round(summarise(result.slipMs).p99),
        "driver cpu s": row["driver cpu s"]!,
      });
    }
    return rows;
  } finally {
    await Promise.all([relay.kill(), receiver.stop(), driver.stop()]);
  }
}
