/** Stands in for `wrangler` on PATH: keeps an account in a file, and what it was asked. Output and refusals as the real one's. */
import { readFileSync, statSync, writeFileSync } from "node:fs";

export interface FakeState {
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

const file = process.env["FAKE_WRANGLER_STATE"]!;
const state = JSON.parse(readFileSync(file, "utf8")) as FakeState;
const given = process.argv.slice(2);
const [config] = take("--config", 2);
take("--env", 2);
state.configs.push(config!);
state.calls.push(given.join(" ").replace(/--secrets-file \S+/, "--secrets-file FILE"));
const failing = state.failing !== null && given.join(" ").startsWith(state.failing.command) ? state.failing : null;
const refusal = failing !== null && !failing.done ? failing.message : answer();
writeFileSync(file, JSON.stringify(state));
if (refusal !== null || failing !== null) {
  console.error(`✘ [ERROR] ${refusal ?? failing!.message}`);
  process.exit(1);
}

/** Does the work and prints; what it refuses it says. */
function answer(): string | null {
  const command = given.join(" ");
  if (command === "d1 list --json") print(Object.keys(state.databases).map((name) => ({ name, uuid: name })));
  else if (command.startsWith("d1 create")) createDatabase();
  else if (command.startsWith("d1 migrations apply")) return migrate();
  else if (command.startsWith("d1 execute")) print([{ results: [{ wrapped: Number(isWrapped()) }], success: true }]);
  else if (command.startsWith("queues info")) return state.queues.includes(given[2]!) ? null : noQueue(given[2]!);
  else if (command.startsWith("queues create")) state.queues.push(given[2]!);
  else if (command.startsWith("secret list")) return listSecrets();
  else if (command.startsWith("deploy")) return deploy();
  else if (command.startsWith("r2 bucket lifecycle list")) listRules();
  else if (command.startsWith("r2 bucket lifecycle add")) addRule();
  else if (command.startsWith("r2 bucket lifecycle remove")) removeRule();
  else return `Unknown arguments: ${command}`;
  return null;
}

function createDatabase(): void {
  const location = given[3] === "--location" ? given[4]! : null;
  state.databases[given[2]!] = { location, migrated: false, wrapped: false };
}

function migrate(): string | null {
  const database = databaseOf(given[3]!);
  if (!database) return `Couldn't find a D1 DB bound as '${given[3]}' in the API.`;
  database.migrated = true;
  return null;
}

/** `DB` is the first, `DB_1` the second. */
function databaseOf(binding: string) {
  return Object.values(state.databases)[Number(binding.split("_")[1] ?? 0)];
}

function isWrapped(): boolean {
  return databaseOf(given[2]!)?.wrapped ?? false;
}

function noQueue(name: string): string {
  return `Queue "${name}" does not exist. To create it, run: wrangler queues create ${name}`;
}

function listSecrets(): string | null {
  if (!state.worker) return `Worker "hooklane" not found.\n\nIf this is a new Worker, run \`wrangler deploy\` first.`;
  print(Object.keys(state.worker.secrets).map((name) => ({ name, type: "secret_text" })));
  return null;
}

function deploy(): string | null {
  const at = given.indexOf("--secrets-file");
  const path = at === -1 ? null : given[at + 1]!;
  const secrets = path === null ? {} : JSON.parse(readFileSync(path, "utf8"));
  if (path !== null) state.secretsFile = { path, mode: (statSync(path).mode & 0o777).toString(8) };
  const all = { ...state.worker?.secrets, ...secrets };
  const missing = ["OPERATOR_TOKEN", "SECRETS_KEY"].filter((name) => !(name in all));
  if (missing.length > 0) return `The following required secrets have not been set: ${missing.join(", ")}`;
  const queue = state.queues.filter((name) => name.includes("-dead")).length;
  if (queue < 3) return noQueue("hooklane-first-attempts-dead");
  state.worker = { secrets: all, deploys: (state.worker?.deploys ?? 0) + 1 };
  console.log("Deployed hooklane triggers (0.04 sec)\n  https://hooklane.acme.workers.dev\n  schedule: * * * * *");
  return null;
}

function listRules(): void {
  console.log(`Listing lifecycle rules for bucket '${given[4]}'...`);
  const rules = state.rules.map(
    ({ name, enabled, prefix, action }) =>
      `name:     ${name}\nenabled:  ${enabled ? "Yes" : "No"}\nprefix:   ${prefix || "(all prefixes)"}\naction:   ${action}`,
  );
  console.log(rules.length > 0 ? rules.join("\n\n") : `There are no lifecycle rules for bucket '${given[4]}'.`);
}

function addRule(): void {
  const [, , , , , name, prefix, , days] = given;
  state.rules.push({ name: name!, enabled: true, prefix: prefix!, action: `Expire objects after ${days} days` });
}

function removeRule(): void {
  state.rules = state.rules.filter(({ name }) => name !== given[6]);
}

function take(flag: string, length: number): string[] {
  const at = given.indexOf(flag);
  return at === -1 ? [] : given.splice(at, length).slice(1);
}

function print(value: unknown): void {
  console.log(JSON.stringify(value, null, 2));
}
