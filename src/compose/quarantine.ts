import type { QuarantineDeps } from "../app/endpoint/quarantine.ts";
import { logFault } from "../log-fault.ts";
import { createEndpointStore } from "../storage/config/endpoints.ts";
import { createRerouteLedger } from "../storage/ledger/reroute.ts";
import { createDoorbells } from "./doorbells.ts";
import { runtime } from "./runtime.ts";
import { database } from "./shards.ts";

type Context = Pick<ExecutionContext, "waitUntil">;

const refusedAt = new Map<string, number>();

/** For whoever finds out that an endpoint hangs, and for its lane, which finds out that it answers. */
export function quarantineDeps(env: Env, context: Context, shard: string): QuarantineDeps {
  const db = database(env, shard);
  return {
    ...runtime,
    ...createDoorbells(env, context, shard),
    ...createRerouteLedger(db),
    endpoints: createEndpointStore(db),
    refusedAt,
    logQuarantine: (line) => console.log(JSON.stringify({ level: "warn", ...line })),
    logFault,
  };
}
