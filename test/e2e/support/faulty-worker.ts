/**
 * The Worker with bindings that fail on demand, for tests only. The flags are those of this module: locally one isolate
 * runs requests, queues and objects alike, so they hold for all of them.
 */
import { interceptDatabase } from "../../../src/compose/intercept-database.ts";
import worker, { EndpointLane as RealEndpointLane, Watchdog as RealWatchdog } from "../../../src/index.ts";
import { FAULTS_PATH, LEDGER_PATH, type FaultCounts, type Faults } from "./faults.ts";

export { Sender } from "../../../src/index.ts";

let faults: Faults = {};
let counts: FaultCounts = { ledger: 0, payloads: 0, queues: 0 };

export class EndpointLane extends RealEndpointLane {
  constructor(context: DurableObjectState, env: Env) {
    super(context, faultyEnv(env));
  }
}

export class Watchdog extends RealWatchdog {
  constructor(context: DurableObjectState, env: Env) {
    super(context, faultyEnv(env));
  }
}

export default {
  async fetch(request, env, context) {
    const { pathname } = new URL(request.url);
    if (pathname === FAULTS_PATH) return control(request);
    if (pathname === LEDGER_PATH) return writeLedger(request, env);
    return worker.fetch(request, faultyEnv(env), context);
  },
  queue: (batch, env, context) => worker.queue(batch, faultyEnv(env), context),
  scheduled: (controller, env) => worker.scheduled(controller, faultyEnv(env)),
} satisfies ExportedHandler<Env>;

async function control(request: Request): Promise<Response> {
  const before = counts;
  if (request.method === "POST") {
    faults = await request.json<Faults>();
    counts = { ledger: 0, payloads: 0, queues: 0 };
  }
  return Response.json(before);
}

async function writeLedger(request: Request, env: Env): Promise<Response> {
  const { sql, values } = await request.json<{ sql: string; values: unknown[] }>();
  return Response.json(
    (
      await env.DB.prepare(sql)
        .bind(...values)
        .run()
    ).meta,
  );
}

/** One wrapped env for each real one, since the Worker remembers its settings by it. */
const wrapped = new WeakMap<Env, Env>();

function faultyEnv(env: Env): Env {
  let faulty = wrapped.get(env);
  if (!faulty) {
    const bindings = Object.entries(env).map(([name, binding]) => [name, faultyBinding(name, binding)]);
    wrapped.set(env, (faulty = Object.fromEntries(bindings) as Env));
  }
  return faulty;
}

function faultyBinding(name: string, binding: unknown): unknown {
  if (/^DB(_\d+)?$/.test(name)) return interceptDatabase(binding as D1Database, run);
  if (name === "PAYLOADS") return faultyBucket(binding as R2Bucket);
  if (["FIRST_ATTEMPTS", "RETRIES", "OUTCOMES"].includes(name)) return faultyQueue(binding as Queue);
  return binding;
}

async function run<T>(sqls: string[], work: () => Promise<T>): Promise<T> {
  const fault = takeLedgerFault(sqls);
  if (fault === "refused") throw new Error("D1_ERROR: refused by the test");
  const answer = await work();
  if (fault === "answer_lost") throw new Error("D1_ERROR: the answer was lost by the test");
  return answer;
}

function takeLedgerFault(sqls: string[]): "refused" | "answer_lost" | null {
  const { ledger } = faults;
  if (!ledger || ledger.times === 0) return null;
  const isWrite = sqls.some((sql) => /^\s*(insert|update|delete)\b/i.test(sql));
  if (isWrite !== (ledger.statements === "writes")) return null;
  if (ledger.containing !== undefined && !sqls.some((sql) => sql.includes(ledger.containing!))) return null;
  if (ledger.after !== undefined && ledger.after-- > 0) return null;
  if (ledger.times !== undefined) ledger.times--;
  counts.ledger++;
  return ledger.fault;
}

function faultyBucket(bucket: R2Bucket): R2Bucket {
  const refuse = () => {
    counts.payloads++;
    throw new Error("R2: refused by the test");
  };
  return {
    get: async (...call: [string]) => (faults.payloads?.gets ? refuse() : bucket.get(...call)),
    put: async (...call: [string, string]) => (faults.payloads?.puts ? refuse() : bucket.put(...call)),
    delete: (keys: string[]) => bucket.delete(keys),
  } as R2Bucket;
}

function faultyQueue(queue: Queue): Queue {
  const orFault = async (send: () => Promise<unknown>) => {
    if (!faults.queues) return send();
    counts.queues++;
    if (faults.queues === "refused") throw new Error("Queue: refused by the test");
    return undefined;
  };
  return {
    send: (...call: [unknown]) => orFault(() => queue.send(...call)),
    sendBatch: (...call: [MessageSendRequest[]]) => orFault(() => queue.sendBatch(...call)),
    metrics: () => queue.metrics(),
  } as Queue;
}
