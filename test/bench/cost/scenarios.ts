import { batchBody, eventBody, type Load } from "../support/driver.ts";
import { subscribe } from "../support/relay.ts";
import type { CostPlace } from "./counted-relay.ts";

export interface Scenario {
  name: string;
  /** Makes what it needs, and gives back what is measured: publishes `events` and waits until all of it has been done. */
  prepare(place: CostPlace, given: { bytes: number; events: number }): Promise<() => Promise<void>>;
  /** Each event waits for the one before to be delivered: nothing is shared. */
  isAlone?: boolean;
  /** Of each event, where that is not 1. */
  deliveries?: number;
}

const CONCURRENCY = 16;
const FAN_OUT = 10;
const EVENTS_PER_BATCH = 100;
const ORDERING_KEYS = 10;
const QUIET_MS = 15_000;
/** Longer than it takes to publish all of them. */
const RETRY_SECONDS = 5;

export const SCENARIOS: Scenario[] = [
  { name: "unordered", prepare: (place, given) => prepare(place, given, {}) },
  { name: "unordered, alone", isAlone: true, prepare: (place, given) => prepare(place, given, {}, { isAlone: true }) },
  { name: "strict", prepare: (place, given) => prepare(place, given, { ordering_mode: "strict" }) },
  {
    name: "strict, alone",
    isAlone: true,
    prepare: (place, given) => prepare(place, given, { ordering_mode: "strict" }, { isAlone: true }),
  },
  { name: "keyed", prepare: (place, given) => prepare(place, given, { ordering_mode: "keyed" }) },
  {
    name: "fan-out to 10",
    deliveries: FAN_OUT,
    prepare: (place, given) => prepare(place, given, {}, { endpoints: FAN_OUT }),
  },
  { name: "fails once", prepare: prepareFailure },
  { name: "batch of 100", prepare: (place, given) => prepare(place, given, {}, { batch: EVENTS_PER_BATCH }) },
  { name: "duplicate", prepare: prepareDuplicate },
];

/** Tells what one call makes from what another does. */
let made = 0;

async function prepare(
  { relay, receiver, driver, tenant }: CostPlace,
  { bytes, events }: { bytes: number; events: number },
  endpoint: Record<string, unknown>,
  { endpoints = 1, batch = 1, isAlone = false } = {},
): Promise<() => Promise<void>> {
  const type = `cost.n${++made}`;
  const path = `/${type}`;
  for (let i = 0; i < endpoints; i++) {
    await subscribe(tenant, { url: `${receiver.url}${path}`, type, timeout_ms: 5_000, ...endpoint });
  }
  const keys = Array.from({ length: ORDERING_KEYS }, (_, n) => ({ ordering_key: `k${n}` }));
  const fields = endpoint["ordering_mode"] === "keyed" ? keys : [{}];
  const load: Omit<Load, "until" | "pace"> = {
    key: tenant.key,
    url: `${relay.url}/v1/events${batch > 1 ? "/batch" : ""}`,
    bodies: fields.map((own) => (batch > 1 ? batchBody(type, bytes, batch, own) : eventBody(type, bytes, own))),
  };
  const publish = async (requests: number, concurrency: number) => {
    await driver.run({ ...load, pace: { concurrency }, until: { requests } });
  };
  // The first of all loads what later ones know.
  await publish(1, 1);
  await receiver.waitFor(path, batch * endpoints, QUIET_MS);
  return async () => {
    await receiver.take();
    if (!isAlone) {
      await publish(events / batch, batch > 1 ? 2 : CONCURRENCY);
      await receiver.waitFor(path, events * endpoints, QUIET_MS);
      return;
    }
    for (let n = 1; n <= events; n++) {
      await publish(1, 1);
      await receiver.waitFor(path, n, QUIET_MS);
      // Until its close is on record too.
      await new Promise((resolve) => setTimeout(resolve, 150));
    }
  };
}

/** Everything fails until all of it has failed, and is delivered at the second attempt. */
async function prepareFailure(place: CostPlace, given: { bytes: number; events: number }) {
  const { receiver } = place;
  const path = `/cost.n${made + 1}`;
  const retry_policy = { delays_seconds: [RETRY_SECONDS], jitter: 0 };
  const publish = await prepare(place, given, { retry_policy });
  return async () => {
    await receiver.behave(path, { status: 503 });
    await publish();
    await receiver.behave(path, {});
    await receiver.waitFor(path, 2 * given.events, QUIET_MS);
  };
}

async function prepareDuplicate(place: CostPlace, { bytes, events }: { bytes: number; events: number }) {
  const { relay, receiver, driver, tenant } = place;
  const type = `cost.n${++made}`;
  await subscribe(tenant, { url: `${receiver.url}/${type}`, type });
  const publish = async (requests: number) => {
    const body = eventBody(type, bytes, { idempotency_key: type });
    const load = { key: tenant.key, url: `${relay.url}/v1/events`, bodies: [body] };
    await driver.run({ ...load, pace: { concurrency: CONCURRENCY }, until: { requests } });
  };
  await publish(1);
  await receiver.waitFor(`/${type}`, 1, QUIET_MS);
  return () => publish(events);
}
