import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Deployment } from "./config.ts";
import { harmfulRules, parseLifecycleRules, planRules } from "./lifecycle.ts";
import type { NewSecret } from "./secrets.ts";
import { CommandFailed, mustRun, parseJsonOutput, runWrangler } from "./wrangler.ts";

/** Where D1 can be asked to be; a hint for objects says more places. */
const D1_LOCATIONS = new Set(["weur", "eeur", "apac", "oc", "wnam", "enam"]);

/** Databases come first, since their tables are there before the code that reads them. Gives back those it made. */
export async function createDatabases({ databases, vars, configArgs }: Deployment): Promise<string[]> {
  const args = ["d1", "list", "--json", ...configArgs];
  const present = parseJsonOutput(args, await mustRun(args)) as { name: string }[];
  const names = new Set(present.map(({ name }) => name));
  const location = vars["LEDGER_LOCATION"];
  const hint = location !== undefined && D1_LOCATIONS.has(location) ? ["--location", location] : [];
  const missing = databases.map(({ name }) => name).filter((name) => !names.has(name));
  for (const name of missing) await mustRun(["d1", "create", name, ...hint, ...configArgs]);
  return missing;
}

/** `wrangler deploy` makes the queues that are sent to, and refuses when one that is only read is missing. */
export async function createQueues({ consumedQueues, configArgs }: Deployment): Promise<string[]> {
  const made: string[] = [];
  for (const queue of consumedQueues) {
    const info = await runWrangler(["queues", "info", queue, ...configArgs]);
    if (info.ok) continue;
    if (!/does not exist/.test(info.output)) throw new CommandFailed(["queues", "info", queue], info.output);
    await mustRun(["queues", "create", queue, ...configArgs]);
    made.push(queue);
  }
  return made;
}

export async function migrate({ databases, configArgs }: Deployment): Promise<void> {
  for (const { binding } of databases) {
    await mustRun(["d1", "migrations", "apply", binding, "--remote", ...configArgs], { show: true });
  }
}

/** Uploads the code, and with it the secrets that were missing. Gives back where it answers, if it says so. */
export async function deployWorker({ configArgs }: Deployment, secrets: NewSecret[]): Promise<string | null> {
  const folder = mkdtempSync(join(tmpdir(), "hooklane-deploy-"));
  try {
    const file = join(folder, "secrets.json");
    const values = Object.fromEntries(secrets.map(({ name, value }) => [name, value]));
    if (secrets.length > 0) writeFileSync(file, JSON.stringify(values), { mode: 0o600 });
    const secretArgs = secrets.length > 0 ? ["--secrets-file", file] : [];
    const { stdout } = await mustRun(["deploy", ...configArgs, ...secretArgs], { show: true });
    return /https:\/\/\S+\.workers\.dev/.exec(stdout)?.[0] ?? null;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Makes the bucket's rules what they should be, and looks at them again. Rules of others stay, unless they do harm. */
export async function ensureLifecycle({ bucket, configArgs }: Deployment): Promise<string[]> {
  const listArgs = ["r2", "bucket", "lifecycle", "list", bucket, ...configArgs];
  const list = async () => parseLifecycleRules((await mustRun(listArgs)).stdout);
  let present = await list();
  const { remove, add } = planRules(present);
  for (const name of remove) {
    await mustRun(["r2", "bucket", "lifecycle", "remove", bucket, "--name", name, ...configArgs]);
  }
  for (const { name, prefix, expireDays } of add) {
    const rule = [name, prefix, "--expire-days", String(expireDays), "--force"];
    await mustRun(["r2", "bucket", "lifecycle", "add", bucket, ...rule, ...configArgs]);
  }
  present = add.length > 0 ? await list() : present;
  const left = planRules(present).add;
  if (left.length > 0) {
    throw new Error(`Bucket ${bucket} still lacks rules: ${left.map(({ name }) => name).join(", ")}.`);
  }
  const harmful = harmfulRules(present);
  if (harmful.length > 0) {
    const rules = harmful.map(({ name, prefix, action }) => `"${name}" (${prefix || "whole bucket"}: ${action})`);
    throw new Error(
      `Bucket ${bucket} has rules that delete payloads while deliveries need them: ${rules.join(", ")}. Remove each: ` +
        `npx wrangler r2 bucket lifecycle remove ${bucket} --name NAME`,
    );
  }
  return add.map(({ name }) => name);
}
