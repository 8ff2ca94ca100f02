/**
 * The Worker with everything counted that its bill counts, at the bindings and by what they themselves say, for benches only.
 * Started by `HOOKLANE_ENTRY=test/bench/cost/counting/worker.ts npm start`.
 */
import worker, { EndpointLane as RealEndpointLane, Watchdog as RealWatchdog } from "../../../../src/index.ts";
import { COUNTS_PATH, TICK_PATH, type CountsAnswer, type Origin } from "./counts.ts";
import { countingDatabase } from "./database.ts";
import { countingNamespace, watchObject } from "./objects.ts";
import { countingBatch, countingQueue } from "./queues.ts";
import { count, countAck, readTally, resetTally } from "./tally.ts";

export { Sender } from "../../../../src/index.ts";

export class EndpointLane extends RealEndpointLane {
  readonly #watched;

  constructor(context: DurableObjectState, env: Env) {
    const watched = watchObject(context, "lane");
    super(context, countingEnv(env, "lane"));
    this.#watched = watched;
  }

  override wake(): Promise<number | null> {
    return this.#watched.call(() => super.wake());
  }

  override alarm(): Promise<void> {
    return this.#watched.alarm(() => super.alarm());
  }
}

export class Watchdog extends RealWatchdog {
  readonly #watched;

  constructor(context: DurableObjectState, env: Env) {
    const watched = watchObject(context, "watchdog");
    super(context, countingEnv(env, "watchdog"));
    this.#watched = watched;
  }

  override alarm(): Promise<void> {
    return this.#watched.alarm(() => super.alarm());
  }
}

export default {
  async fetch(request, env, context) {
    const { pathname } = new URL(request.url);
    if (pathname === COUNTS_PATH) return answerCounts(request, env);
    if (pathname === TICK_PATH) return tickNow(env);
    count("request", "invocations");
    // An environment of its own, so that what it does before its answer can be told from what goes on after it.
    let trips = 0;
    const response = await worker.fetch(
      request,
      countingEnv(env, "request", () => trips++),
      context,
    );
    if (request.method === "POST" && /^\/v1\/events(\/batch)?$/.test(pathname) && response.ok) countAck(trips);
    return response;
  },

  async queue(batch, env, context) {
    count("queue", "invocations");
    const counted = countingBatch(batch);
    await worker.queue(counted.batch, countingEnv(env, "queue"), context);
    counted.settle();
  },

  scheduled(controller, env) {
    count("cron", "invocations");
    return worker.scheduled(controller, countingEnv(env, "cron"));
  },
} satisfies ExportedHandler<Env>;

async function answerCounts(request: Request, env: Env): Promise<Response> {
  const { meta } = await env.DB.prepare("select 1").run();
  const answer: CountsAnswer = { ...readTally(), ledgerBytes: meta.size_after };
  const response = Response.json(answer);
  if (request.method === "POST") resetTally();
  return response;
}

async function tickNow(env: Env): Promise<Response> {
  await worker.scheduled({} as ScheduledController, countingEnv(env, "cron"));
  return new Response(null, { status: 204 });
}

function countingEnv(env: Env, origin: Origin, onTrip: () => void = () => {}): Env {
  const bindings = Object.entries(env).map(([name, binding]) => [name, countingBinding(name, binding, origin, onTrip)]);
  return Object.fromEntries(bindings) as Env;
}

function countingBinding(name: string, binding: unknown, origin: Origin, onTrip: () => void): unknown {
  if (/^DB(_\d+)?$/.test(name)) return countingDatabase(binding as D1Database, origin, onTrip);
  if (name === "PAYLOADS") return countingBucket(binding as R2Bucket, origin, onTrip);
  if (["FIRST_ATTEMPTS", "RETRIES", "OUTCOMES"].includes(name)) return countingQueue(binding as Queue, origin);
  if (name === "LANES") return countingNamespace(binding as Env["LANES"], origin);
  if (name === "WATCHDOG") return countingNamespace(binding as Env["WATCHDOG"], origin);
  return binding;
}

function countingBucket(bucket: R2Bucket, origin: Origin, onTrip: () => void): R2Bucket {
  const counted = <A extends unknown[], R>(unit: "classA" | "classB", call: (...input: A) => R) => {
    return (...input: A): R => {
      onTrip();
      count(origin, unit);
      return call(...input);
    };
  };
  return {
    get: counted("classB", (...call: [string]) => bucket.get(...call)),
    put: counted("classA", (...call: [string, string]) => bucket.put(...call)),
    delete(keys: string | string[]) {
      count(origin, "objectsDeleted", Array.isArray(keys) ? keys.length : 1);
      return bucket.delete(keys);
    },
  } as R2Bucket;
}
