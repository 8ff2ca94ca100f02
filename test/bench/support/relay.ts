import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createPlayground, type Playground } from "../../../scripts/api-caller.ts";
import { usageOf, type Usage } from "./usage.ts";

const root = resolve(import.meta.dirname, "../../..");
const OPERATOR_TOKEN = "bench";

export interface RelayOptions {
  /** Another Worker under the same bindings, from the root of the repository. */
  entry?: string;
  /** Settings, and whatever else the process is to find in its environment. */
  env?: Record<string, string>;
  /** Kept when it is given, for the next relay over it; else one is made and goes with the relay. */
  stateDir?: string;
}

export interface BenchRelay {
  url: string;
  /** Of the runtime (workerd) alone. */
  usage(): Usage;
  /** In peace, so that its state is whole. */
  stop(): Promise<void>;
  /** With SIGKILL, the runtime too. */
  kill(): Promise<void>;
}

/** The relay of `npm start` as a process of its own, on a free port. */
export async function startRelay(options: RelayOptions = {}): Promise<BenchRelay> {
  const stateDir = options.stateDir ?? mkdtempSync(join(tmpdir(), "hooklane-bench-"));
  const child = spawn(process.execPath, [join(root, "scripts/start.ts")], {
    cwd: root,
    // A group of its own: the runtime is a process that outlives its parent.
    detached: true,
    stdio: ["ignore", "pipe", "inherit"],
    env: {
      ...process.env,
      X_LOCAL_OBSERVABILITY: "false",
      PORT: "0",
      HOOKLANE_STATE: stateDir,
      OPERATOR_TOKEN,
      ...(options.entry !== undefined && { HOOKLANE_ENTRY: options.entry }),
      ...options.env,
    },
  });
  const pid = child.pid!;
  const ended = once(child, "exit");
  const killGroup = () => {
    try {
      process.kill(-pid, "SIGKILL");
    } catch {
      // Nobody is left of it.
    }
  };
  process.once("exit", killGroup);

  async function end(signal: "SIGTERM" | "SIGKILL"): Promise<void> {
    if (signal === "SIGTERM") process.kill(pid, signal);
    else killGroup();
    await ended;
    killGroup();
    process.off("exit", killGroup);
    if (options.stateDir === undefined) rmSync(stateDir, { recursive: true, force: true });
  }

  return {
    url: await ready(child.stdout),
    usage: () => usageOf(pid, "workerd"),
    stop: () => end("SIGTERM"),
    kill: () => end("SIGKILL"),
  };
}

/** A tenant whose plan allows as many endpoints as a bench wants, with a source named `orders`. */
export async function createTenant(relay: { url: string }, name: string): Promise<Playground> {
  const playground = await createPlayground(relay.url, OPERATOR_TOKEN, name);
  const response = await fetch(`${relay.url}/v1/tenants/${playground.tenantId}`, {
    method: "PATCH",
    headers: { Authorization: `Bearer ${OPERATOR_TOKEN}`, "Content-Type": "application/json" },
    body: JSON.stringify({ plan: "enterprise" }),
  });
  if (!response.ok) throw new Error(`PATCH tenant answered ${response.status}: ${await response.text()}`);
  return playground;
}

/** An endpoint, with `fields` beside its URL, that gets events of one type. */
export async function subscribe(
  { call }: Pick<Playground, "call">,
  { url, type, ...fields }: { url: string; type: string } & Record<string, unknown>,
): Promise<string> {
  const { id } = await call("POST", "/v1/endpoints", { url, ...fields });
  await call("POST", "/v1/subscriptions", { endpoint_id: id, event_type_pattern: type });
  return id;
}

/** Where it is reached, once it is. Goes on reading what is printed, or the relay would wait for that. */
function ready(printed: NodeJS.ReadableStream): Promise<string> {
  let text = "";
  return new Promise((resolve, reject) => {
    printed.on("data", (chunk) => {
      text = (text + String(chunk)).slice(-100_000);
      const url = /Hooklane ready on (\S+)/.exec(text)?.[1];
      if (url !== undefined) resolve(url);
    });
    printed.on("end", () => reject(new Error(`The relay ended:\n${text}`)));
  });
}
