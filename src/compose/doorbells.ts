import type { DeliveryCall } from "../app/deliver/delivery-call.ts";
import { parseSettings } from "../env.ts";
import { logFault } from "../log-fault.ts";
import type { FanOutRef } from "../app/publish/expand-fan-out.ts";
import { sendFanOuts, sendRings } from "../queue/producer.ts";
import { within } from "./bounded.ts";
import { inTurn } from "./in-turn.ts";
import { runtime } from "./runtime.ts";
import { shardsOf } from "./shards.ts";

/** An isolate arms a watchdog at most this often; the watchdog's own alarm and cron do the rest. */
const ARM_INTERVAL_MS = 10_000;
const WATCHDOG_DELAY_MS = 30_000;
const OBJECT_LIMIT_MS = 5_000;
/**
 * Lanes that one invocation wakes at once. An event may have thousands, and each begins with a trip to the ledger, which does one
 * after the other: all at once they would wait there for longer than they wait, and ask again.
 */
const WAKES_AT_ONCE = 32;
/** A lane that takes longer to look at its rows does not keep those behind it waiting. */
const WAKE_TURN_MS = 5_000;
/**
 * Between one and the next that waits. A runtime on one machine looks at sockets and clocks only once no call within it is left to do: without
 * waiting for the clock, thousands of lanes would all be woken before it takes a single answer or request.
 */
const WAKE_PAUSE_MS = 1;
/** A report that is due is in the ledger, or put off again, within this time. */
const REPORT_SLACK_MS = 60_000;

const armedAt = new Map<string, number>();

/**
 * Lanes of receivers that hang: until when those are left alone, and by when the next ring comes. What is new for them rings
 * once in this time for all of it, since it most likely rings in vain.
 */
const resting = new Map<string, { until: number; rungBy: number }>();
const REST_RING_MS = 1_000;
const MAX_RESTING = 1_000;

export interface LaneName {
  tenantId: string;
  endpointId: string;
  generation: number;
}

/**
 * What a shard's rows are called to attention with. Nobody waits for it, and it never fails: the rows are due in any case, so
 * a queue or an object that refuses costs time, and never the caller's request.
 */
export function createDoorbells(env: Env, context: Pick<ExecutionContext, "waitUntil">, shard: string) {
  function ring(sending: Promise<void>): void {
    context.waitUntil(sending.catch((error: unknown) => logFault("ring", error)));
    const now = runtime.now();
    // A clock that went back must not keep it unarmed until it has caught up.
    if (Math.abs(now - (armedAt.get(shard) ?? 0)) < ARM_INTERVAL_MS) return;
    armedAt.set(shard, now);
    context.waitUntil(
      watchdog(env, shard)
        .arm(WATCHDOG_DELAY_MS)
        .catch((error: unknown) => logFault("arm watchdog", error)),
    );
  }
  const inTurnOfWakes = inTurn(WAKES_AT_ONCE, () => runtime.sleep(WAKE_PAUSE_MS));

  async function wake(lane: LaneName): Promise<void> {
    try {
      const woken = laneOf(env, shard, lane)
        .wake()
        .then((until) => noteRest(nameOf(shard, lane), until))
        .catch((error: unknown) => logFault("wake lane", error));
      context.waitUntil(woken);
      await within(WAKE_TURN_MS, woken).catch(() => {});
    } catch (error) {
      logFault("wake lane", error);
    }
  }

  const wakeLane = (lane: LaneName) => context.waitUntil(inTurnOfWakes(() => wake(lane)));

  return {
    announce: (calls: DeliveryCall[]) => ring(sendRings(env.FIRST_ATTEMPTS, shard, calls, 0)),
    announceFanOuts: (fanOuts: FanOutRef[]) => ring(sendFanOuts(env.FIRST_ATTEMPTS, shard, fanOuts)),
    ringLater: (calls: DeliveryCall[], delayMs: number) => ring(sendRings(env.RETRIES, shard, calls, delayMs)),
    callWatchdog: () =>
      context.waitUntil(
        watchdog(env, shard)
          .arm(0)
          .catch((error: unknown) => logFault("call watchdog", error)),
      ),
    /** A lane that is not woken finds its work by its own alarm, or by the watchdog. */
    wakeLane,
    /** The same for new work, of which a lane that rests is told together. */
    announceLane(lane: LaneName): void {
      const rest = resting.get(nameOf(shard, lane));
      const now = runtime.now();
      if (rest === undefined || rest.until <= now) return wakeLane(lane);
      if (rest.rungBy > now && rest.rungBy <= now + REST_RING_MS) return;
      rest.rungBy = now + REST_RING_MS;
      context.waitUntil(runtime.sleep(REST_RING_MS).then(() => wake(lane)));
    },
  };
}

function noteRest(lane: string, until: number | null): void {
  if (until === null) return void resting.delete(lane);
  if (resting.size >= MAX_RESTING) resting.clear();
  resting.set(lane, { until, rungBy: resting.get(lane)?.rungBy ?? 0 });
}

/** Arms the watchdog of every shard at once: by cron, and at start. */
export async function armWatchdogs(env: Env): Promise<void> {
  await Promise.all([...shardsOf(env).keys()].map((shard) => watchdog(env, shard).arm(0)));
}

/** The queue has the report in any case; the watchdog is told so that it does not take the attempt for abandoned. */
export async function awaitReports(env: Env, shard: string, delaySeconds: number): Promise<void> {
  const until = runtime.now() + delaySeconds * 1_000 + REPORT_SLACK_MS;
  await within(OBJECT_LIMIT_MS, watchdog(env, shard).awaitReports(until)).catch((error: unknown) =>
    logFault("await reports", error),
  );
}

/** Until when reports of attempts may be waiting; 0 when none are known of. Throws when the watchdog does not answer. */
export function reportsUntil(env: Env, shard: string): Promise<number> {
  return within(OBJECT_LIMIT_MS, watchdog(env, shard).reportsUntil());
}

export function watchdog(env: Env, shard: string) {
  return env.WATCHDOG.getByName(`watchdog:${shard}`);
}

/** The one place where lane objects are made: by name, near the ledger when the settings say where that is. */
function laneOf(env: Env, shard: string, lane: LaneName) {
  const locationHint = parseSettings(env).LEDGER_LOCATION as DurableObjectLocationHint | undefined;
  return env.LANES.get(env.LANES.idFromName(nameOf(shard, lane)), { locationHint });
}

const nameOf = (shard: string, { tenantId, endpointId, generation }: LaneName) =>
  `lane:${shard}:${tenantId}:${endpointId}:${generation}`;
