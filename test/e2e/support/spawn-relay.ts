import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { join, resolve } from "node:path";
import { OPERATOR_TOKEN } from "./leak.ts";
import { groupEnded } from "./process-group.ts";

const root = resolve(import.meta.dirname, "../../..");
const node = join(root, "node_modules/.bin/node");

export interface SpawnOptions {
  stateDir: string;
  /** A free one otherwise. */
  port?: number | undefined;
  /** What is undefined is taken out of the environment. */
  env?: Record<string, string | undefined> | undefined;
  /** What to run instead of the start script itself. */
  command?: [file: string, ...args: string[]] | undefined;
  /** Gets the process as soon as it runs, long before it is ready, with what kills all of it. */
  onSpawned?(child: ChildProcess, kill: () => Promise<void>): void;
  /** Gets all that it prints, standard output and error. */
  onPrinted?(text: string): void;
}

export interface SpawnedRelay {
  url: string;
  child: ChildProcess;
  /** SIGTERM unless told otherwise, and waits for the exit. Gives back the exit code. */
  stop(signal?: "SIGTERM" | "SIGINT"): Promise<number | null>;
  /** SIGKILL to the whole process group, as if the machine had died; resolves once all of it is gone. */
  kill(): Promise<void>;
}

/** Starts the real relay, as `npm start` does, in a process group of its own; resolves once it says that it is ready. */
export async function spawnRelay(options: SpawnOptions): Promise<SpawnedRelay> {
  if (options.port !== undefined) return spawnAt(options.port, options);
  for (;;) {
    const port = await freePort();
    try {
      return await spawnAt(port, options);
    } catch (error) {
      // Somebody else has taken it in the meantime.
      if (!(error as Error).message.includes(`Port ${port} is in use`)) throw error;
    }
  }
}

async function spawnAt(port: number, options: SpawnOptions): Promise<SpawnedRelay> {
  const [file, ...args] = options.command ?? [node, "scripts/start.ts"];
  const child = spawn(file, args, {
    cwd: root,
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, OPERATOR_TOKEN, PORT: String(port), HOOKLANE_STATE: options.stateDir, ...options.env },
  });
  const ended = async (signal: () => void) => {
    if (child.exitCode === null && child.signalCode === null) {
      const exit = once(child, "exit");
      signal();
      await exit;
    }
    return child.exitCode;
  };
  const kill = async () => {
    await ended(() => process.kill(-child.pid!, "SIGKILL"));
    await groupEnded(child.pid!);
  };
  options.onSpawned?.(child, kill);
  let beginning: string | null = "";
  const url = await new Promise<string>((ready, failed) => {
    const read = (chunk: Buffer) => {
      const text = chunk.toString();
      options.onPrinted?.(text);
      if (beginning === null) return;
      beginning += text;
      const match = /Hooklane ready on (\S+)/.exec(beginning);
      if (match) ready(match[1]!);
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    child.once("exit", (code) => failed(new Error(`The relay exited with ${code}:\n${beginning}`)));
  });
  beginning = null;
  return { url, child, stop: (signal = "SIGTERM") => ended(() => child.kill(signal)), kill };
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
