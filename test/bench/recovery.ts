import { batchBody, startDriver, type BenchDriver } from "./support/driver.ts";
import { startReceiver, type BenchReceiver } from "./support/receiver.ts";
import { createTenant, startRelay, subscribe, type BenchRelay } from "./support/relay.ts";
import type { BenchContext, Row, Section } from "./support/section.ts";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { nowMs } from "./support/child.ts";
import { round } from "./support/table.ts";

const EVENTS_PER_BATCH = 100;
const BYTES = 1_000;
const QUIET_MS = 90_000;

/** How long it takes until what an outage left behind has arrived, from when it is over. */
export const recovery: Section = async (context) => {
  const events = context.quick ? 500 : 10_000;
  const rows = [await receiverAway(context, events)];
  // What the queues held is lost with the process, and nobody looks for it before it is half a minute late.
  if (!context.quick) rows.push(await relayAway(context, events));
  return rows;
};

/** The receiver answers 503 while everything is published, and for a while after. */
async function receiverAway(context: BenchContext, events: number): Promise<Row> {
  const [relay, receiver, driver] = [await startRelay(), await startReceiver(), startDriver()];
  const path = "/away";
  try {
    const { call, key } = await createTenant(relay, "recovery");
    const retries = { delays_seconds: [context.quick ? 1 : 5, 10, 30], max_attempts: 30 };
    await subscribe({ call }, { url: receiver.url + path, type: "recovery", retry_policy: retries });
    await receiver.behave(path, { status: 503 });
    const eventIds = await publish(context, relay, driver, key, events);
    await new Promise((resolve) => setTimeout(resolve, context.quick ? 1_000 : 10_000));
    const failed = (await receiver.take())[path]?.count ?? 0;
    await receiver.behave(path, {});
    const row = await drain(context, receiver, path, new Set(eventIds), nowMs());
    return { outage: "the receiver answers 503", events, "requests before": failed, ...row };
  } finally {
    await Promise.all([relay.kill(), receiver.stop(), driver.stop()]);
  }
}

/** The relay is killed when it has acknowledged everything, and started again over what it left. */
async function relayAway(context: BenchContext, events: number): Promise<Row> {
  const stateDir = mkdtempSync(join(tmpdir(), "hooklane-bench-"));
  const [receiver, driver] = [await startReceiver(), startDriver()];
  let relay = await startRelay({ stateDir });
  const path = "/killed";
  try {
    const { call, key } = await createTenant(relay, "recovery");
    await subscribe({ call }, { url: receiver.url + path, type: "recovery" });
    const eventIds = await publish(context, relay, driver, key, events);
    await relay.kill();
    const before = (await receiver.take())[path]?.eventIds ?? [];
    const missing = new Set(eventIds);
    for (const id of before) missing.delete(id);
    const from = nowMs();
    relay = await startRelay({ stateDir });
    const startedMs = nowMs() - from;
    const row = await drain(context, receiver, path, missing, from);
    context.note(`The killed relay was back after ${round(startedMs / 1_000)} s, which its time to drain includes`);
    return { outage: "the relay is killed", events, "requests before": before.length, ...row };
  } finally {
    await Promise.all([relay.kill(), receiver.stop(), driver.stop()]);
    rmSync(stateDir, { recursive: true, force: true });
  }
}

async function publish(context: BenchContext, relay: BenchRelay, driver: BenchDriver, key: string, events: number) {
  const result = await driver.run({
    key,
    url: `${relay.url}/v1/events/batch`,
    bodies: [batchBody("recovery", BYTES, EVENTS_PER_BATCH)],
    pace: { concurrency: 4 },
    until: { requests: events / EVENTS_PER_BATCH },
  });
  context.countErrors("event not accepted", events - result.eventIds.length);
  return result.eventIds;
}

/** Until all of `missing` have come, or nothing has for a while. */
async function drain(context: BenchContext, receiver: BenchReceiver, path: string, missing: Set<string>, from: number) {
  const events = missing.size;
  let [requests, lastAt, heardAt] = [0, from, from];
  while (missing.size > 0 && nowMs() - heardAt < QUIET_MS) {
    await receiver.waitFor(path, missing.size, 1_000);
    const received = (await receiver.take())[path];
    for (const [n, id] of (received?.eventIds ?? []).entries()) {
      requests++;
      heardAt = nowMs();
      if (missing.delete(id)) lastAt = received!.at[n]!;
    }
  }
  context.countErrors("event never arrived", missing.size);
  const seconds = (lastAt - from) / 1_000;
  return { left: events, "seconds to drain": round(seconds), "drained/s": round(events / seconds), requests };
}
