import { startDriver } from "./support/driver.ts";
import { startFloor, timeCall } from "./support/floor.ts";
import { startReceiver } from "./support/receiver.ts";
import type { Row, Section } from "./support/section.ts";
import { round, summarise } from "./support/table.ts";

const AT_ONCE = 64;
const RECEIVERS_MS = [0, 10, 50];

/** `what` is one of `floor/worker.ts`. */
const CALLS: { what: string; name?: string; path?: string }[] = [
  { what: "d1-select" },
  { what: "d1-batch-of-10-selects" },
  { what: "d1-insert" },
  { what: "d1-publish-batch" },
  { what: "d1-claim-close-batch" },
  { what: "r2-put" },
  { what: "r2-get" },
  { what: "queue-send" },
  { what: "object-call" },
  ...RECEIVERS_MS.map((ms) => ({ what: "fetch", name: `fetch, ${ms} ms`, path: `/${ms}` })),
];

/** One call of each kind, alone and 64 at once, from within a Worker that has none of our code. */
export const floor: Section = async ({ quick, countErrors }) => {
  const count = quick ? 30 : 400;
  const [receiver, driver] = [await startReceiver(), startDriver()];
  const relay = await startFloor(driver);
  try {
    for (const ms of RECEIVERS_MS) await receiver.behave(`/${ms}`, { delayMs: ms });
    const rows: Row[] = [{ call: "empty request" }];
    const nameOf = (atOnce: number) => (atOnce === 1 ? "ms alone" : `a second, ${atOnce} at once`);
    const valueOf = (atOnce: number, ms: number) => (atOnce === 1 ? round(ms, 2) : round(1_000 / ms, 0));
    for (const atOnce of [1, AT_ONCE]) {
      const requests = count * (atOnce === 1 ? 1 : 4);
      const load = { url: `${relay.url}/health`, key: "", bodies: ["{}"], pace: { concurrency: atOnce } };
      await driver.run({ ...load, until: { requests: 50 } });
      const result = await driver.run({ ...load, until: { requests } });
      const ms = atOnce === 1 ? summarise(result.ackMs).mean : (result.endedAt - result.startedAt) / requests;
      rows[0]![nameOf(atOnce)] = valueOf(atOnce, ms);
      countErrors("empty request not answered", requests - (result.statuses["200"] ?? 0));
    }
    for (const { what, path = "", name = what } of CALLS) {
      const row: Row = { call: name };
      for (const atOnce of [1, AT_ONCE]) {
        const call = { what, atOnce, to: receiver.url + path };
        await timeCall(driver, relay, { ...call, run: `warm-up-${atOnce}`, count: AT_ONCE });
        row[nameOf(atOnce)] = valueOf(atOnce, await timeCall(driver, relay, { ...call, run: `${atOnce}`, count }));
      }
      rows.push(row);
    }
    return rows;
  } finally {
    await Promise.all([relay.kill(), receiver.stop(), driver.stop()]);
  }
};
