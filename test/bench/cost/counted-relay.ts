import { setTimeout as sleep } from "node:timers/promises";
import type { Playground } from "../../../scripts/api-caller.ts";
import { startDriver, type BenchDriver } from "../support/driver.ts";
import { startReceiver, type BenchReceiver } from "../support/receiver.ts";
import { startRelay, type BenchRelay } from "../support/relay.ts";
import { addCounts, COUNTS_PATH, TICK_PATH, type Counts, type CountsAnswer } from "./counting/counts.ts";

/** A relay that counts, with a receiver and a driver. */
export interface CountedRelay {
  relay: BenchRelay;
  receiver: BenchReceiver;
  driver: BenchDriver;
  /** All since the last reset, once nobody but the watchdog is at work any more. */
  read(): Promise<CountsAnswer>;
  reset(): Promise<CountsAnswer>;
  /** One tick of the watchdog, begun as cron does. */
  tick(): Promise<void>;
  stop(): Promise<void>;
}

export interface Measured {
  /** Of requests, queues and lanes: what events cause. */
  counts: Counts;
  /** Of the watchdog and cron, meanwhile. */
  background: Counts;
  alarms: number;
  answer: CountsAnswer;
  ledgerBytes: number;
}

const ENTRY = "test/bench/cost/counting/worker.ts";
const POLL_MS = 60;
const QUIET_POLLS = 6;

export async function startCountedRelay(stateDir?: string): Promise<CountedRelay> {
  const relay = await startRelay({ entry: ENTRY, ...(stateDir !== undefined && { stateDir }) });
  const [receiver, driver] = [await startReceiver(), startDriver()];
  const ask = async (method: string): Promise<CountsAnswer> => {
    const response = await fetch(relay.url + COUNTS_PATH, { method });
    return (await response.json()) as CountsAnswer;
  };

  async function settle(): Promise<void> {
    let quiet = 0;
    for (let before = ""; quiet < QUIET_POLLS; await sleep(POLL_MS)) {
      const { request, queue, lane } = (await ask("GET")).counts;
      const now = JSON.stringify([request, queue, lane]);
      quiet = now === before ? quiet + 1 : 0;
      before = now;
    }
  }

  return {
    relay,
    receiver,
    driver,
    async read() {
      await settle();
      return ask("GET");
    },
    async reset() {
      await settle();
      return ask("POST");
    },
    async tick() {
      const before = (await ask("GET")).counts.watchdog.invocations;
      await fetch(relay.url + TICK_PATH, { method: "POST" });
      while ((await ask("GET")).counts.watchdog.invocations === before) await sleep(POLL_MS);
      await settle();
    },
    async stop() {
      await Promise.all([relay.stop(), receiver.stop(), driver.stop()]);
    },
  };
}

/** What `act` costs, until all that it causes has been done. */
export async function measure(counted: CountedRelay, act: () => Promise<void>): Promise<Measured> {
  const { ledgerBytes: before } = await counted.reset();
  await act();
  const answer = await counted.read();
  const { request, queue, lane, watchdog, cron } = answer.counts;
  return {
    counts: addCounts([request, queue, lane]),
    background: addCounts([watchdog, cron]),
    alarms: lane.invocations,
    answer,
    ledgerBytes: answer.ledgerBytes - before,
  };
}

/** What scenarios publish with. */
export interface CostPlace extends CountedRelay {
  tenant: Pick<Playground, "call" | "key">;
}
