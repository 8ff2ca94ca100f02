import { payloadText, startDriver, type BenchDriver } from "./support/driver.ts";
import { startReceiver } from "./support/receiver.ts";
import { startRelay } from "./support/relay.ts";
import type { Row, Section } from "./support/section.ts";
import { round, summarise } from "./support/table.ts";

export const FLOOR_ENTRY = "test/bench/floor/worker.ts";
const AT_ONCE = 64;
const SLOW_RECEIVERS_MS = [0, 10, 50];

/** `what` is one of `floor/worker.ts`. */
const CALLS: { what: string; name?: string; path?: string }[] = [
  { what: "d1-insert" },
  { what: "d1-publish-batch" },
  { what: "d1-claim-close-batch" },
  { what: "r2-put" },
  { what: "r2-get" },
  { what: "queue-send" },
  { what: "object-call" },
  ...SLOW_RECEIVERS_MS.map((ms) => ({ what: "fetch", name: `fetch ${ms}`, path: `/${ms}` })),
];

/** One call of each kind, alone and 64 at once, from within a Worker that has none of our code. */
export const floor: Section = async ({ quick, shared, countErrors }) => {
  const count = quick ? 60 : 400;
  const [relay, receiver, driver] = [await startRelay({ entry: FLOOR_ENTRY }), await startReceiver(), startDriver()];
  try {
    await post(driver, `${relay.url}/seed`, 1);
    for (const ms of SLOW_RECEIVERS_MS) await receiver.behave(`/${ms}`, { delayMs: ms });
    const rows: Row[] = [];
    for (const concurrency of [1, AT_ONCE]) {
      const requests = count * (concurrency === 1 ? 1 : 4);
      const load = { url: `${relay.url}/health`, key: "", bodies: ["{}"], pace: { concurrency } };
      await driver.run({ ...load, until: { requests: 50 } });
      const result = await driver.run({ ...load, until: { requests } });
      const perSecond = (requests * 1_000) / (result.endedAt - result.startedAt);
      if (concurrency === 1) rows.push({ call: "empty request", "ms alone": round(summarise(result.ackMs).mean, 2) });
      else rows[0]![`a second, ${AT_ONCE} at once`] = round(perSecond, 0);
      countErrors("empty request not answered", requests - (result.statuses["200"] ?? 0));
    }
    for (const { what, path = "", name = what } of CALLS) {
      const row: Row = { call: name };
      for (const at of [1, AT_ONCE]) {
        // The second run is measured. What it gets, claims and closes has been put and inserted by a call before it.
        for (const [n, some] of [AT_ONCE, count].entries()) {
          const query = new URLSearchParams({
            what,
            at: `${at}`,
            count: `${some}`,
            run: `${at}-${n}`,
            to: receiver.url + path,
          });
          const tookMs = await post(driver, `${relay.url}/call?${query}`, 1, payloadText(1_000));
          if (n === 0) continue;
          if (at === 1) row["ms alone"] = round(tookMs / some, 2);
          else row[`a second, ${AT_ONCE} at once`] = round((some * 1_000) / tookMs, 0);
          if (at === 1) shared.set(`${name} ms`, tookMs / some);
        }
      }
      rows.push(row);
    }
    return rows;
  } finally {
    await Promise.all([relay.kill(), receiver.stop(), driver.stop()]);
  }
};

/** How long it took until all were answered, in milliseconds. */
export async function post(driver: BenchDriver, url: string, requests: number, body = "{}"): Promise<number> {
  const pace = { concurrency: 1 };
  const result = await driver.run({ url, key: "", bodies: [body], pace, until: { requests } });
  if (result.statuses["200"] !== requests) throw new Error(`${url} answered ${JSON.stringify(result.statuses)}`);
  return result.endedAt - result.startedAt;
}
