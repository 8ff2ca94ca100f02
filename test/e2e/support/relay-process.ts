import type { ChildProcess } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inject } from "vitest";
import { findLeak } from "./leak.ts";
import type { SharedRelayPlace } from "./shared-relays.ts";
import { spawnRelay, type SpawnOptions } from "./spawn-relay.ts";

export { OPERATOR_TOKEN } from "./leak.ts";
export { freePort, freePortToKeep } from "./spawn-relay.ts";

export interface SharedRelay {
  url: string;
  /** Everything it has printed so far, standard output and error. */
  printed(): string;
}

export interface RelayProcess extends SharedRelay {
  stateDir: string;
  /** The process group of the relay and all it starts. */
  group: number;
  /** SIGTERM unless told otherwise, and waits for the exit. Gives back the exit code. */
  stop(signal?: "SIGTERM" | "SIGINT"): Promise<number | null>;
  /** SIGKILL to the whole process group, as if the machine had died. */
  kill(): Promise<void>;
}

/** A `stateDir` is kept from an earlier start; without one it is a new folder. */
export type StartOptions = Omit<SpawnOptions, "stateDir" | "onSpawned" | "onPrinted"> & {
  stateDir?: string;
  /** Called as soon as it runs, long before it is ready, with what kills it. */
  spawned?: (kill: RelayProcess["kill"]) => void;
};

/**
 * A plain relay that other files use too, and that nobody may stop. For whatever is a tenant's own. Not for what depends on
 * its settings, on what others publish, or on how long an event waits in a queue behind thousands.
 */
export async function sharedRelay(): Promise<SharedRelay> {
  const response = await fetch(inject("sharedRelays"));
  const text = await response.text();
  if (!response.ok) throw new Error(text);
  const { url, log } = JSON.parse(text) as SharedRelayPlace;
  return { url, printed: () => readFileSync(log, "utf8") };
}

/** Starts the real relay, as `npm start` does, in a process group of its own on a free port. */
export async function startRelayProcess(options: StartOptions = {}): Promise<RelayProcess> {
  const stateDir = options.stateDir ?? createStateDir();
  let printed = "";
  const relay = await spawnRelay({
    ...options,
    stateDir,
    onSpawned(child, kill) {
      running.add(child);
      child.once("exit", () => running.delete(child));
      options.spawned?.(kill);
    },
    onPrinted: (text) => void (printed += text),
  });
  logs.push(() => printed);
  const { child, url, stop, kill } = relay;
  return { url, stateDir, group: child.pid!, printed: () => printed, stop, kill };
}

export function createStateDir(folder = tmpdir()): string {
  const stateDir = mkdtempSync(join(folder, "hooklane-e2e-"));
  stateDirs.push(stateDir);
  return stateDir;
}

/**
 * Where a relay with thousands of lanes goes. Locally each trip to the database, even one that reads, and each new object waits
 * for the disk several times; a killed process leaves its files in memory as it leaves them on a disk.
 */
export function folderInMemory(): string {
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize >= MEMORY_NEEDED ? MEMORY : tmpdir();
  } catch {
    return tmpdir();
  }
}

const MEMORY = "/dev/shm";
const MEMORY_NEEDED = 2 * 2 ** 30;
const logs: (() => string)[] = [];
const running = new Set<ChildProcess>();
const stateDirs: string[] = [];

/** Everything that every relay of a file has printed is looked through. */
export function expectNoLeak(): void {
  for (const printed of logs.splice(0)) {
    const leak = findLeak(printed());
    if (leak !== undefined) throw new Error(`A secret is in what the relay printed: ${leak}`);
  }
}

/** A file that fails must leave neither processes nor folders behind. */
export function removeRelays(): void {
  for (const child of running) {
    try {
      process.kill(-child.pid!, "SIGKILL");
    } catch {
      // It has ended already.
    }
  }
  running.clear();
  for (const stateDir of stateDirs.splice(0)) rmSync(stateDir, { recursive: true, force: true });
}
