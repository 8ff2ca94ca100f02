import { interceptDatabase } from "../../../../src/compose/intercept-database.ts";
import type { Calls, Call, Owner } from "./calls.ts";

export interface Outside {
  sendMessage(queue: string, body: unknown, delaySeconds: number): void;
  object(name: string): any;
}

const QUEUES = {
  FIRST_ATTEMPTS: "hooklane-first-attempts",
  RETRIES: "hooklane-retries",
  OUTCOMES: "hooklane-outcomes",
};

/** The Worker's environment as one owner has it: each call of a binding goes through `calls`. */
export function faultyEnv(real: Env, calls: Calls, owner: Owner, outside: Outside): Env {
  const run = <T>(what: string, kind: Call["kind"], work: () => Promise<T>) => calls.run(owner, what, kind, work);
  const faulty: Record<string, unknown> = { ...real };
  for (const name of Object.keys(real)) if (/^DB_\d+$/.test(name)) delete faulty[name];
  faulty["DB"] = faultyDatabase((real as unknown as { FAULTS: D1Database }).FAULTS, run);
  const { PAYLOADS: bucket } = real;
  faulty["PAYLOADS"] = {
    get: (...input: [string]) =>
      run("R2 get", "read", async () => {
        const object = await bucket.get(...input);
        // Read here: a body is a stream of whoever got it.
        const bytes = object && (await object.arrayBuffer());
        return object && { etag: object.etag, arrayBuffer: async () => bytes };
      }),
    put: (...input: [string, Uint8Array]) => run("R2 put", "write", () => bucket.put(...input)),
    delete: (...input: [string[]]) => run("R2 delete", "write", () => bucket.delete(...input)),
  };
  for (const [binding, queue] of Object.entries(QUEUES)) {
    const send = async (body: unknown, delaySeconds = 0) =>
      outside.sendMessage(queue, JSON.parse(JSON.stringify(body)), delaySeconds);
    faulty[binding] = {
      send: (body: unknown, options?: { delaySeconds?: number }) =>
        run(`${queue} send`, "write", () => send(body, options?.delaySeconds)),
      sendBatch: (messages: { body: unknown; delaySeconds?: number }[]) =>
        run(`${queue} sendBatch`, "write", async () => {
          for (const { body, delaySeconds } of messages) await send(body, delaySeconds);
        }),
      metrics: () => run(`${queue} metrics`, "read", async () => ({ backlogCount: 0, backlogBytes: 0 })),
    };
  }
  const object = (binding: string, name: string, methods: string[]) =>
    Object.fromEntries(
      methods.map((method) => [
        method,
        (...input: unknown[]) =>
          run(`${binding} ${method}`, "request", async () => outside.object(name)[method](...input)),
      ]),
    );
  faulty["LANES"] = {
    idFromName: (name: string) => name,
    get: (name: string) => object("lane", name, ["wake"]),
  };
  faulty["WATCHDOG"] = {
    getByName: (name: string) => object("watchdog", name, ["arm", "awaitReports", "reportsUntil"]),
  };
  return faulty as unknown as Env;
}

type Run = <T>(what: string, kind: Call["kind"], work: () => Promise<T>) => Promise<T>;

/** Named by its statements, each kind of them once. */
function faultyDatabase(db: D1Database, run: Run): D1Database {
  return interceptDatabase(db, (sqls, work) => {
    const what = [...new Set(sqls.map(summaryOf))].join(" + ");
    return run(`D1 ${what}`, sqls.some(isWrite) ? "write" : "read", work);
  });
}

const isWrite = (sql: string) => /^\s*(insert|update|delete)\b/i.test(sql);

/** "update delivery", "insert attempt", "select event", … */
function summaryOf(sql: string): string {
  const verb = /^\s*(\w+)/.exec(sql)![1]!.toLowerCase();
  const table = { insert: /into\s+"?(\w+)/i, update: /update\s+"?(\w+)/i, delete: /from\s+"?(\w+)/i }[verb];
  return `${verb} ${(table ?? /\bfrom\s+"?(delivery|event|endpoint|tenant\w*|api_key|source|attempt|\w+)/i).exec(sql)?.[1] ?? ""}`;
}
