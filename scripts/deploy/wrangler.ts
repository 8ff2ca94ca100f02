import { spawn } from "node:child_process";
import { delimiter, join, resolve } from "node:path";
import { stripVTControlCharacters } from "node:util";

export const root = resolve(import.meta.dirname, "../..");

export interface Ran {
  args: string[];
  ok: boolean;
  stdout: string;
  /** Both streams, as they came. */
  output: string;
}

/** A command that did not do what it had to. `output` is what is left to show of it. */
export class CommandFailed extends Error {
  readonly output: string;

  constructor({ args, output }: Ran, left = output) {
    super(`wrangler ${args.map((arg) => (/^[\w./:=-]+$/.test(arg) ? arg : JSON.stringify(arg))).join(" ")}`);
    this.output = left;
  }
}

interface RunOptions {
  /** Passes its output on as it comes. */
  show?: boolean;
}

export type RunWrangler = (args: string[], options: RunOptions) => Promise<Ran>;

/** `wrangler` with the configuration of one deployment. */
export interface Wrangler {
  /** Failed or not. */
  run(args: string[], options?: RunOptions): Promise<Ran>;
  /** Where a failure ends the deployment. */
  mustRun(args: string[], options?: RunOptions): Promise<Ran>;
  /** What a command with a JSON flag printed; lines before it are passed over. */
  ask(args: string[]): Promise<unknown>;
}

export function createWrangler(runWith: RunWrangler, configArgs: string[]): Wrangler {
  const wrangler: Wrangler = {
    run: (args, options = {}) => runWith([...args, ...configArgs], options),
    async mustRun(args, options = {}) {
      const ran = await wrangler.run(args, options);
      if (!ran.ok) throw new CommandFailed(ran, options.show ? "" : ran.output);
      return ran;
    },
    ask: async (args) => parseJsonOutput(await wrangler.mustRun(args)),
  };
  return wrangler;
}

/**
 * The one place that talks to Cloudflare: runs `wrangler`, the one of this repository unless PATH has another before it.
 * Nobody is asked anything, since a question that is answered by a guess is worse than a failure.
 */
export async function runWrangler(args: string[], { show = false }: RunOptions): Promise<Ran> {
  // Given for this script to decide on; wrangler has its own ideas of what to do with them.
  const { OPERATOR_TOKEN: _token, SECRETS_KEY: _key, METRICS_TOKEN: _metrics, ...env } = process.env;
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
  return { args, ok: code === 0, stdout: stripVTControlCharacters(stdout), output: stripVTControlCharacters(output) };
}

export function parseJsonOutput(ran: Ran): unknown {
  const start = /^[[{]/m.exec(ran.stdout);
  try {
    return JSON.parse(ran.stdout.slice(start?.index ?? 0));
  } catch {
    throw new CommandFailed(ran, `This is not the JSON that was expected:\n${ran.output}`);
  }
}
