import { payloadText, type BenchDriver } from "./driver.ts";
import { startRelay, type BenchRelay } from "./relay.ts";

/** The bare runtime: `test/bench/floor/worker.ts` under the relay's bindings, on tables that have been seeded. */
export async function startFloor(driver: BenchDriver): Promise<BenchRelay> {
  const relay = await startRelay({ entry: "test/bench/floor/worker.ts" });
  await post(driver, `${relay.url}/seed`);
  return relay;
}

export interface FloorCall {
  /** One of the Worker's. What gets, claims or closes needs another's puts or inserts, of the same `run` and as many. */
  what: string;
  run: string;
  count: number;
  atOnce?: number;
  /** Where requests go. */
  to?: string;
  /** Of a payload. */
  bytes?: number;
}

/** Milliseconds from one call to the next, of so many in one request. */
export async function timeCall(
  driver: BenchDriver,
  { url }: BenchRelay,
  { what, run, count, atOnce = 1, to = "", bytes = 1_000 }: FloorCall,
): Promise<number> {
  const query = new URLSearchParams({ what, run, count: `${count}`, at: `${atOnce}`, to });
  return (await post(driver, `${url}/call?${query}`, payloadText(bytes))) / count;
}

/** How long it took until it was answered. */
async function post(driver: BenchDriver, url: string, body = "{}"): Promise<number> {
  const load = { url, key: "", bodies: [body], pace: { concurrency: 1 } };
  const result = await driver.run({ ...load, until: { requests: 1 } });
  if (result.statuses["200"] !== 1) throw new Error(`${url} answered ${JSON.stringify(result.statuses)}`);
  return result.endedAt - result.startedAt;
}
