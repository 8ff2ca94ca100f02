/** Stands in for `wrangler`: keeps an account, and what it was asked. Output and refusals as the real one's. */
import { readFileSync, statSync } from "node:fs";
import type { Ran, RunWrangler } from "../../../../scripts/deploy/wrangler.ts";

export interface FakeAccount {
  databases: Record<string, { location: string | null; migrated: boolean; wrapped: boolean }>;
  queues: string[];
  /** Null while it was never deployed. */
  worker: { secrets: Record<string, string>; deploys: number } | null;
  rules: { name: string; enabled: boolean; prefix: string; action: string }[];
  /** Every command, without its config. */
  calls: string[];
  /** The configuration each command was given. */
  configs: string[];
  /** A command that begins like this fails; with `done` after its work, as when an answer is lost. */
  failing: { command: string; message: string; done: boolean } | null;
  secretsFile: { path: string; mode: string } | null;
}

type Answer = { printed: string } | { refused: string };

export function createFakeAccount(over: Partial<FakeAccount> = {}): FakeAccount {
  return {
    databases: {},
    queues: [],
    worker: null,
    rules: [],
    calls: [],
    configs: [],
    failing: null,
    secretsFile: null,
    ...over,
  };
}

/** `wrangler` over this account; what it shows goes to `print`. */
export function createFakeWrangler(account: FakeAccount, print: (text: string) => void): RunWrangler {
  return async (args, { show = false }) => {
    const given = [...args];
    const [config] = take(given, "--config", 2);
    take(given, "--env", 2);
    const command = given.join(" ");
    account.configs.push(config!);
    account.calls.push(command.replace(/--secrets-file \S+/, "--secrets-file FILE"));
    const failing = account.failing !== null && command.startsWith(account.failing.command) ? account.failing : null;
    const did = failing !== null && !failing.done ? { refused: failing.message } : answerTo(account, given);
    const answer = failing === null || "refused" in did ? did : { refused: failing.message };
    const ran = "refused" in answer ? failed(args, answer.refused) : succeeded(args, answer.printed);
    if (show) print(ran.output);
    return ran;
  };
}

const failed = (args: string[], message: string): Ran => ({
  args,
  ok: false,
  stdout: "",
  output: `✘ [ERROR] ${message}\n`,
});
const succeeded = (args: string[], printed: string): Ran => ({ args, ok: true, stdout: printed, output: printed });

const DONE: Answer = { printed: "" };
const refuse = (refused: string): Answer => ({ refused });
const json = (value: unknown): Answer => ({ printed: `${JSON.stringify(value, null, 2)}\n` });

/** Does the work. */
function answerTo(account: FakeAccount, given: string[]): Answer {
  const command = given.join(" ");
  const name = given[2]!;
  if (command === "d1 list --json") return json(Object.keys(account.databases).map((name) => ({ name, uuid: name })));
  if (command.startsWith("d1 create")) return createDatabase(account, given);
  if (command.startsWith("d1 migrations apply")) return migrate(account, given[3]!);
  if (command.startsWith("d1 execute")) {
    return json([{ results: [{ wrapped: Number(databaseOf(account, name)?.wrapped ?? false) }], success: true }]);
  }
  if (command.startsWith("queues info")) return account.queues.includes(name) ? DONE : noQueue(name);
  if (command.startsWith("queues create")) {
    account.queues.push(name);
    return DONE;
  }
  if (command.startsWith("secret list")) return listSecrets(account);
  if (command.startsWith("deploy")) return deploy(account, given);
  if (command.startsWith("r2 bucket lifecycle list")) return listRules(account, given[4]!);
  if (command.startsWith("r2 bucket lifecycle add")) return addRule(account, given);
  if (command.startsWith("r2 bucket lifecycle remove")) {
    account.rules = account.rules.filter((rule) => rule.name !== given[6]);
    return DONE;
  }
  return refuse(`Unknown arguments: ${command}`);
}

function createDatabase(account: FakeAccount, given: string[]): Answer {
  const location = given[3] === "--location" ? given[4]! : null;
  account.databases[given[2]!] = { location, migrated: false, wrapped: false };
  return DONE;
}

function migrate(account: FakeAccount, binding: string): Answer {
  const database = databaseOf(account, binding);
  if (!database) return refuse(`Couldn't find a D1 DB bound as '${binding}' in the API.`);
  database.migrated = true;
  return DONE;
}

/** `DB` is the first, `DB_1` the second. */
function databaseOf({ databases }: FakeAccount, binding: string) {
  return Object.values(databases)[Number(binding.split("_")[1] ?? 0)];
}

function noQueue(name: string): Answer {
  return refuse(`Queue "${name}" does not exist. To create it, run: wrangler queues create ${name}`);
}

function listSecrets({ worker }: FakeAccount): Answer {
  if (!worker) return refuse(`Worker "hooklane" not found.\n\nIf this is a new Worker, run \`wrangler deploy\` first.`);
  return json(Object.keys(worker.secrets).map((name) => ({ name, type: "secret_text" })));
}

function deploy(account: FakeAccount, given: string[]): Answer {
  const at = given.indexOf("--secrets-file");
  const path = at === -1 ? null : given[at + 1]!;
  const secrets = path === null ? {} : JSON.parse(readFileSync(path, "utf8"));
  if (path !== null) account.secretsFile = { path, mode: (statSync(path).mode & 0o777).toString(8) };
  const all = { ...account.worker?.secrets, ...secrets };
  const missing = ["OPERATOR_TOKEN", "SECRETS_KEY"].filter((name) => !(name in all));
  if (missing.length > 0) return refuse(`The following required secrets have not been set: ${missing.join(", ")}`);
  const dead = account.queues.filter((name) => name.includes("-dead")).length;
  if (dead < 3) return noQueue("hooklane-first-attempts-dead");
  account.worker = { secrets: all, deploys: (account.worker?.deploys ?? 0) + 1 };
  return {
    printed: "Deployed hooklane triggers (0.04 sec)\n  https://hooklane.acme.workers.dev\n  schedule: * * * * *\n",
  };
}

function listRules(account: FakeAccount, bucket: string): Answer {
  const rules = account.rules.map(
    ({ name, enabled, prefix, action }) =>
      `name:     ${name}\nenabled:  ${enabled ? "Yes" : "No"}\nprefix:   ${prefix || "(all prefixes)"}\naction:   ${action}`,
  );
  const list = rules.length > 0 ? rules.join("\n\n") : `There are no lifecycle rules for bucket '${bucket}'.`;
  return { printed: `Listing lifecycle rules for bucket '${bucket}'...\n${list}\n` };
}

function addRule({ rules }: FakeAccount, [, , , , , name, prefix, , days]: string[]): Answer {
  rules.push({ name: name!, enabled: true, prefix: prefix!, action: `Expire objects after ${days} days` });
  return DONE;
}

function take(given: string[], flag: string, length: number): string[] {
  const at = given.indexOf(flag);
  return at === -1 ? [] : given.splice(at, length).slice(1);
}
