import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll } from "vitest";
import { groupEnded } from "./process-group.ts";

const root = resolve(import.meta.dirname, "../../..");
const node = join(root, "node_modules/.bin/node");

export const OPERATOR_TOKEN = "e2e-operator-token";

export interface RelayProcess {
  url: string;
  stateDir: string;
  /** The process group of the relay and all it starts. */
  group: number;
  /** Everything the process has printed so far, standard output and error. */
  printed(): string;
  /** SIGTERM unless told otherwise, and waits for the exit. Gives back the exit code. */
  stop(signal?: "SIGTERM" | "SIGINT"): Promise<number | null>;
  /** SIGKILL to the whole process group, as if the machine had died. */
  kill(): Promise<void>;
}

export interface StartOptions {
  /** Kept from an earlier start; a new folder otherwise. */
  stateDir?: string;
  /** A free one otherwise. */
  port?: number;
  /** What is undefined is taken out of the environment. */
  env?: Record<string, string | undefined>;
  /** What to run instead of the start script itself. */
  command?: [file: string, ...args: string[]];
  /** Called as soon as it runs, long before it is ready, with what kills it. */
  spawned?: (kill: RelayProcess["kill"]) => void;
}

/** Starts the real relay, as `npm start` does, in a process group of its own on a free port. */
export async function startRelayProcess(options: StartOptions = {}): Promise<RelayProcess> {
  const stateDir = options.stateDir ?? createStateDir();
  const port = options.port ?? (await freePort());
  const [file, ...args] = options.command ?? [node, "scripts/start.ts"];
  const child = spawn(file, args, {
    cwd: root,
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, OPERATOR_TOKEN, PORT: String(port), HOOKLANE_STATE: stateDir, ...options.env },
  });
  running.add(child);
  const ended = async (signal: () => void) => {
    if (child.exitCode === null && child.signalCode === null) {
      const exit = once(child, "exit");
      signal();
      await exit;
    }
    running.delete(child);
    return child.exitCode;
  };
  const kill = async () => {
    await ended(() => process.kill(-child.pid!, "SIGKILL"));
    await groupEnded(child.pid!);
  };
  options.spawned?.(kill);
  let printed = "";
  const url = await new Promise<string>((ready, failed) => {
    const read = (chunk: Buffer) => {
      printed += chunk.toString();
      const match = /Hooklane ready on (\S+)/.exec(printed);
      if (match) ready(match[1]!);
    };
    child.stdout!.on("data", read);
    child.stderr!.on("data", read);
    child.once("exit", (code) => failed(new Error(`The relay exited with ${code}:\n${printed}`)));
  });
  logs.push(() => printed);
  return {
    url,
    stateDir,
    group: child.pid!,
    printed: () => printed,
    stop: (signal = "SIGTERM") => ended(() => child.kill(signal)),
    kill,
  };
}

export function createStateDir(): string {
  const stateDir = mkdtempSync(join(tmpdir(), "hooklane-e2e-"));
  stateDirs.push(stateDir);
  return stateDir;
}

export async function freePort(): Promise<number> {
  return (await portIfFree(0))!;
}

/**
 * A port that stays free while a relay is restarted: none of those that the system gives to outgoing connections, of which
 * there are many while tests run.
 */
export async function freePortToKeep(): Promise<number> {
  for (;;) {
    const port = await portIfFree(20_000 + Math.floor(Math.random() * 12_000));
    if (port !== null) return port;
  }
}

async function portIfFree(wanted: number): Promise<number | null> {
  const server = createServer().listen(wanted, "127.0.0.1");
  const taken = await once(server, "listening").then(
    () => false,
    () => true,
  );
  if (taken) return null;
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  return port;
}

/** What no log may hold, whatever a test did: signing keys, API keys, tokens, keys of secrets, signatures. */
const SECRET = new RegExp(
  `whsec_\\w|hlk_[a-z0-9]+_[\\w-]{20}|${OPERATOR_TOKEN}|Bearer |v1a?,[\\w+/]{40}|:[\\w+/]{43}=`,
);
const logs: (() => string)[] = [];
// Everything that every relay of every file prints is looked through.
afterAll(() => {
  for (const printed of logs) {
    const leak = printed()
      .split("\n")
      .find((line) => SECRET.test(line));
    if (leak !== undefined) throw new Error(`A secret is in what the relay printed: ${leak}`);
  }
});

const running = new Set<ChildProcess>();
const stateDirs: string[] = [];
// A file that fails must leave neither processes nor folders behind. Of the hooks of a file this is the last to run.
afterAll(() => {
  for (const child of running) {
    try {
      process.kill(-child.pid!, "SIGKILL");
    } catch {
      // It has ended already.
    }
  }
  for (const stateDir of stateDirs) rmSync(stateDir, { recursive: true, force: true });
});
