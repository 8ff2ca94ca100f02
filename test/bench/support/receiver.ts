import { join } from "node:path";
import { startChild } from "./child.ts";

export interface Received {
  count: number;
  /** When each request's headers had come, in milliseconds since 1970, and the id of its event. Retries are in it too. */
  at: Float64Array;
  eventIds: string[];
  /** That time less the `relayed_at` of the event. */
  sinceRelayedMs: Float64Array;
}

/** What a path does: answer 200 at once unless told otherwise. */
export interface Manner {
  status?: number;
  delayMs?: number;
  /** Never answers. */
  hangs?: boolean;
}

export interface BenchReceiver {
  /** `http://127.0.0.1:PORT`; any path works and counts for itself, whatever its query. */
  url: string;
  /** From now on. */
  behave(path: string, manner: Manner): Promise<void>;
  /** All there was since the last time, by path, which it forgets. */
  take(): Promise<Record<string, Received>>;
  /** Until a path has had so many requests since `take`, and how many it then had: fewer if there is none for `quietMs`. */
  waitFor(path: string, count: number, quietMs: number): Promise<number>;
  /** Most requests of a path that were open at once. */
  mostOpen(path: string): Promise<number>;
  cpuSeconds(): Promise<number>;
  stop(): Promise<void>;
}

/** A consumer as a process of its own. */
export async function startReceiver(): Promise<BenchReceiver> {
  const child = startChild(join(import.meta.dirname, "receiver-process.ts"));
  return {
    url: await child.ask<string>("listen"),
    behave: (path, manner) => child.ask("behave", { path, manner }),
    take: () => child.ask("take"),
    waitFor: (path, count, quietMs) => child.ask("waitFor", { path, count, quietMs }),
    mostOpen: (path) => child.ask("mostOpen", path),
    cpuSeconds: () => child.ask("cpuSeconds"),
    stop: () => child.stop(),
  };
}
