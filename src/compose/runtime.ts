import type { Clock, Runtime } from "../app/runtime.ts";
import { encodeRandomPart } from "../core/ids.ts";

export const runtime: Runtime & Clock = {
  now: () => Date.now(),
  clock: () => performance.now(),
  random: () => Math.random(),
  randomBytes: (length) => crypto.getRandomValues(new Uint8Array(length)),
  sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
};

let isolateId: string | null = null;

/** Tells this isolate from others, for `worker_id`. */
export function isolate(): string {
  return (isolateId ??= encodeRandomPart(runtime.randomBytes(10)).slice(-8));
}
