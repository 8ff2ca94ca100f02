import { createApiCaller } from "../../../scripts/api-caller.ts";
import { eventBody, lagsOf, startDriver } from "../support/driver.ts";
import { startReceiver } from "../support/receiver.ts";
import { startRelay, subscribe } from "../support/relay.ts";
import type { BenchContext } from "../support/section.ts";
import { round, summarise } from "../support/table.ts";

const QUIET_MS = 15_000;
const CONCURRENCY = 64;
const PER_SECOND = 50;
const STRICT_EVENTS = 200;

/** Key timings over a state, by the relay as it is started by `npm start`. */
export async function measureTimes(
  context: BenchContext,
  stateDir: string,
  key: string,
  column: Map<string, number | null>,
): Promise<void> {
  const [relay, receiver, driver] = [await startRelay({ stateDir }), await startReceiver(), startDriver()];
  try {
    for (const [type, endpoint] of [
      ["times.unordered", {}],
      ["times.strict", { ordering_mode: "strict" }],
    ] as const) {
      await subscribe({ call: createApiCaller(relay.url, key) }, { url: `${receiver.url}/${type}`, type, ...endpoint });
    }
    const run = async (type: string, pace: Parameters<typeof driver.run>[0]["pace"], requests: number) => {
      await receiver.take();
      const load = { key, url: `${relay.url}/v1/events`, bodies: [eventBody(type, 1_000)] };
      const result = await driver.run({ ...load, pace, until: { requests } });
      await receiver.waitFor(`/${type}`, result.eventIds.length, QUIET_MS);
      return { result, received: (await receiver.take())[`/${type}`]! };
    };
    await run("times.unordered", { concurrency: 4 }, 50);

    const calm = await run("times.unordered", { perSecond: PER_SECOND }, context.quick ? 150 : 500);
    column.set(`ack p50 ms at ${PER_SECOND}/s`, round(summarise(calm.result.ackMs).p50));
    column.set(`ack p95 ms at ${PER_SECOND}/s`, round(summarise(calm.result.ackMs).p95));
    column.set(`lag p95 ms at ${PER_SECOND}/s`, round(summarise(lagsOf(calm.result, calm.received)).p95));
    const busy = await run("times.unordered", { concurrency: CONCURRENCY }, context.quick ? 500 : 2_000);
    const { startedAt, endedAt, eventIds } = busy.result;
    column.set(`acked/s at ${CONCURRENCY} at once`, round((eventIds.length * 1_000) / (endedAt - startedAt)));
    column.set(`delivered/s at ${CONCURRENCY} at once`, round(ratePerSecond(busy.received.at, startedAt)));
    const strict = await run("times.strict", { concurrency: CONCURRENCY }, STRICT_EVENTS);
    column.set("strict lane, events/s", round(ratePerSecond(strict.received.at, strict.received.at[0]!)));
  } finally {
    await Promise.all([relay.stop(), receiver.stop(), driver.stop()]);
  }
}

function ratePerSecond(at: Float64Array, from: number): number {
  return (at.length * 1_000) / (at.at(-1)! - from);
}
