import { execFile } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);
const helps = new Map<string, Promise<string>>();

/**
 * What is wrong with a `wrangler` command that needs an account, null when nothing is: whether it exists, takes as many
 * arguments, and knows these options. That is as far as one comes without an account.
 */
export async function wranglerMistake(folder: string, command: string): Promise<string | null> {
  const words = command
    .replace(/^npx wrangler\s+/, "")
    .trim()
    .split(/\s+/);
  const options = words.flatMap((word) => /^(--?[a-z][a-z-]*)/.exec(word)?.[1] ?? []);
  // What follows an option is its value, or an argument; only what stands before the first one is surely an argument.
  const firstOption = words.findIndex((word) => word.startsWith("-"));
  const plain = firstOption === -1 ? words : words.slice(0, firstOption);
  const help = await helpOf(folder, plain);
  const usage = help.split("\n")[0]!.trim().split(" ").slice(1);
  const verbs = usage.filter((word) => /^[a-z]/.test(word));
  const takes = usage.length - verbs.length;
  if (verbs.join(" ") !== plain.slice(0, verbs.length).join(" ") || verbs.length === 0)
    return `no such command: ${command}`;
  if (plain.length - verbs.length > takes) return `wrangler ${usage.join(" ")} does not take ${plain.join(" ")}`;
  const unknown = options.filter((option) => !new RegExp(`(^|[\\s,])${option}\\b`, "m").test(help));
  return unknown.length > 0 ? `wrangler ${verbs.join(" ")} does not know ${unknown.join(", ")}` : null;
}

function helpOf(cwd: string, words: string[]): Promise<string> {
  const key = words.join(" ");
  const known = helps.get(key);
  if (known) return known;
  const env = { ...process.env, WRANGLER_SEND_METRICS: "false", NO_COLOR: "1" };
  const help = run("node_modules/.bin/wrangler", [...words, "--help"], { cwd, env }).then(
    ({ stdout }) => stdout.trim(),
    (error: Error) => `wrangler\n${error.message}`,
  );
  helps.set(key, help);
  return help;
}
