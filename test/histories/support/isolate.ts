import type { InFlight } from "../../../src/app/deliver/in-flight.ts";
import type { PublishConfigCache } from "../../../src/app/publish/publish-config.ts";

/** What the relay's modules remember in a process. */
export interface Memory {
  inFlight: InFlight;
  publishConfigs: PublishConfigCache;
}

/** A process with its memory. When it dies, nothing of it runs any more: what it waited for never comes. */
export interface Isolate {
  name: string;
  alive: boolean;
  diedAt: number | null;
  /** Replaced by a deploy: it ends what it has begun and is given nothing new. */
  isOld: boolean;
  memory: Memory;
  onDeath: Set<() => void>;
}

export function createIsolate(name: string, memory: Memory): Isolate {
  return { name, alive: true, diedAt: null, isOld: false, memory, onDeath: new Set() };
}
