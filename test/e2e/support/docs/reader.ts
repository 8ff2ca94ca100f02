import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { eventually } from "../eventually.ts";
import { freePort } from "../relay-process.ts";

const root = resolve(import.meta.dirname, "../../../..");
/** What a clone has not, or what is somebody's own. */
const NOT_CLONED = ["node_modules", ".git", ".wrangler", ".dev.vars", "secrets.env", "dist"];

/** What one command did: what curl was answered, and what was printed besides. */
export interface Outcome {
  exitCode: number;
  printed: string;
  answers: { status: number; body: unknown }[];
}

/** Somebody who follows a page: a folder that is as after `git clone` and `npm ci`, and terminals open in it. */
export interface Reader {
  folder: string;
  /** Where the relay goes that the pages know as localhost:8787. */
  port: number;
  /** Runs a command in the first terminal, where variables stay set. */
  run(command: string): Promise<Outcome>;
  /** Starts a command in a terminal of its own, and waits until it has printed this. */
  start(command: string, printed: RegExp): Promise<Terminal>;
  /** All that those have printed. */
  terminals(): string;
  close(): Promise<void>;
}

export interface Terminal {
  printed(): string;
  stop(): Promise<void>;
}

/** As a shell has it: without what npm and the test runner add. */
function plainEnvironment(port: number): NodeJS.ProcessEnv {
  const added = /^(npm_|VITEST|NODE_|OPERATOR_TOKEN$|SECRETS_KEY$|HOOKLANE_|WRANGLER_)/;
  const own = Object.entries(process.env).filter(([name]) => !added.test(name));
  const path = process.env["PATH"]!.split(delimiter).filter((folder) => !folder.includes("node_modules"));
  return {
    ...Object.fromEntries(own),
    PATH: path.join(delimiter),
    PORT: String(port),
    CI: "true",
    WRANGLER_SEND_METRICS: "false",
    npm_config_update_notifier: "false",
  };
}

export async function createReader(): Promise<Reader> {
  const folder = mkdtempSync(join(tmpdir(), "hooklane-docs-"));
  for (const name of readdirSync(root).filter((entry) => !NOT_CLONED.includes(entry))) {
    cpSync(join(root, name), join(folder, name), { recursive: true });
  }
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  const port = await freePort();
  const env = plainEnvironment(port);
  const shell = openShell(folder, env);
  const terminals: Terminal[] = [];
  return {
    folder,
    port,
    run: (command) => shell.run(command),
    async start(command, expected) {
      const terminal = await startTerminal(command, expected, folder, env);
      terminals.push(terminal);
      return terminal;
    },
    terminals: () => terminals.map((terminal) => terminal.printed()).join("\n"),
    async close() {
      shell.close();
      await Promise.all(terminals.map((terminal) => terminal.stop()));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Whether a shell would run this now, or ask for the rest of it. */
export function isWhole(command: string): boolean {
  return !command.endsWith("\\") && spawnSync("bash", ["-n"], { input: command }).status === 0;
}

const ANSWER = "\u001d";
const DONE = "\u001e";

function openShell(cwd: string, env: NodeJS.ProcessEnv) {
  const shell = spawn("bash", ["--noprofile", "--norc"], { cwd, env, detached: true, stdio: ["pipe", "pipe", "pipe"] });
  let printed = "";
  for (const stream of [shell.stdout, shell.stderr])
    stream.on("data", (chunk: Buffer) => (printed += chunk.toString()));
  // The reader's own curl, which tells the test besides what the status was.
  shell.stdin.write(`curl() { command curl -sS -w '${ANSWER}%{http_code}${ANSWER}' "$@"; }\n`);
  return {
    async run(command: string): Promise<Outcome> {
      printed = "";
      shell.stdin.write(`{ ${command}\n} </dev/null; printf '${DONE}%s${DONE}' $?\n`);
      const exitCode = await eventually(async () => new RegExp(`${DONE}(\\d+)${DONE}`).exec(printed)?.[1]);
      return outcomeOf(printed.split(DONE)[0]!, Number(exitCode));
    },
    close: () => void killGroup(shell),
  };
}

function outcomeOf(text: string, exitCode: number): Outcome {
  const parts = text.split(ANSWER);
  const answers: Outcome["answers"] = [];
  for (let i = 0; i + 1 < parts.length; i += 2) {
    answers.push({ status: Number(parts[i + 1]), body: parsed(parts[i]!) });
  }
  return { exitCode, printed: parts.filter((_, i) => i % 2 === 0).join("\n"), answers };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

async function startTerminal(
  command: string,
  expected: RegExp,
  cwd: string,
  env: NodeJS.ProcessEnv,
): Promise<Terminal> {
  const child = spawn("bash", ["-c", command], { cwd, env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => (text += chunk.toString()));
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  await eventually(async () => {
    if (child.exitCode !== null && !expected.test(text)) throw new Error(`${command} ended:\n${text}`);
    return expected.test(text);
  }).catch((error: unknown) => {
    killGroup(child);
    throw new Error(`${command} printed:\n${text}`, { cause: error });
  });
  return {
    printed: () => text,
    async stop() {
      killGroup(child);
      await ended;
    },
  };
}

function killGroup(child: ChildProcess): void {
  try {
    process.kill(-child.pid!, "SIGKILL");
  } catch {
    // It has ended already.
  }
}

export const isInRepository = (path: string) => existsSync(join(root, path));
