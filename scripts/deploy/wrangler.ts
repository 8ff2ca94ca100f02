import { spawn } from "node:child_process";
import { delimiter, join, resolve } from "node:path";
import { stripVTControlCharacters } from "node:util";

export const root = resolve(import.meta.dirname, "../..");

export interface Ran {
  ok: boolean;
  stdout: string;
  /** Both streams, as they came. */
  output: string;
}

/** A command that had to succeed and did not. */
export class CommandFailed extends Error {
  readonly output: string;

  constructor(args: string[], output: string) {
    super(`wrangler ${args.map((arg) => (/^[\w./:=-]+$/.test(arg) ? arg : JSON.stringify(arg))).join(" ")}`);
    this.output = output;
  }
}

/**
 * The one place that talks to Cloudflare: runs `wrangler`, the one of this repository unless PATH has another before it.
 * Nobody is asked anything, since a question that is answered by a guess is worse than a failure. `show` passes its output on.
 */
export async function runWrangler(args: string[], { show = false } = {}): Promise<Ran> {
  // Given for this script to decide on; wrangler has its own ideas of what to do with them.
  const { OPERATOR_TOKEN: _token, SECRETS_KEY: _key, ...env } = process.env;
  const child = spawn("wrangler", args, {
    cwd: root,
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      ...env,
      PATH: `${env["PATH"] ?? ""}${delimiter}${join(root, "node_modules/.bin")}`,
      NO_COLOR: "1",
      WRANGLER_SEND_METRICS: "false",
    },
  });
  let stdout = "";
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      if (stream === child.stdout) stdout += text;
      output += text;
      if (show) process.stdout.write(text);
    });
  }
  const code = await new Promise<number | null>((ended, failed) => {
    child.once("error", failed);
    child.once("close", ended);
  });
  return { ok: code === 0, stdout: stripVTControlCharacters(stdout), output: stripVTControlCharacters(output) };
}

/** The same where a failure ends the deployment. */
export async function mustRun(args: string[], options: { show?: boolean } = {}): Promise<Ran> {
  const ran = await runWrangler(args, options);
  if (!ran.ok) throw new CommandFailed(args, options.show ? "" : ran.output);
  return ran;
}

/** What a command with a JSON flag printed; lines before it are passed over. */
export function parseJsonOutput(args: string[], { stdout, output }: Ran): unknown {
  const start = /^[[{]/m.exec(stdout);
  try {
    return JSON.parse(stdout.slice(start?.index ?? 0));
  } catch {
    throw new CommandFailed(args, `This is not the JSON that was expected:\n${output}`);
  }
}
