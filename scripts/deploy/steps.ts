import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Deployment } from "./config.ts";
import { harmfulRules, parseLifecycleRules, planRules } from "./lifecycle.ts";
import type { NewSecret } from "./secrets.ts";
import { CommandFailed, type Wrangler } from "./wrangler.ts";

/** Where D1 can be asked to be; a hint for objects says more places. */
const D1_LOCATIONS = new Set(["weur", "eeur", "apac", "oc", "wnam", "enam"]);

/** Databases come first, since their tables are there before the code that reads them. Gives back those it made. */
export async function createDatabases(wrangler: Wrangler, { databases, vars }: Deployment): Promise<string[]> {
  const present = (await wrangler.ask(["d1", "list", "--json"])) as { name: string }[];
  const names = new Set(present.map(({ name }) => name));
  const location = vars["LEDGER_LOCATION"];
  const hint = location !== undefined && D1_LOCATIONS.has(location) ? ["--location", location] : [];
  const missing = databases.map(({ name }) => name).filter((name) => !names.has(name));
  for (const name of missing) await wrangler.mustRun(["d1", "create", name, ...hint]);
  return missing;
}

/** `wrangler deploy` makes the queues that are sent to, and refuses when one that is only read is missing. */
export async function createQueues(wrangler: Wrangler, { consumedQueues }: Deployment): Promise<string[]> {
  const made: string[] = [];
  for (const queue of consumedQueues) {
    const info = await wrangler.run(["queues", "info", queue]);
    if (info.ok) continue;
    if (!/does not exist/.test(info.output)) throw new CommandFailed(info);
    await wrangler.mustRun(["queues", "create", queue]);
    made.push(queue);
  }
  return made;
}

export async function migrate(wrangler: Wrangler, { databases }: Deployment): Promise<void> {
  for (const { binding } of databases) {
    await wrangler.mustRun(["d1", "migrations", "apply", binding, "--remote"], { show: true });
  }
}

/** Uploads the code, and with it the secrets that were missing. Gives back where it answers, if it says so. */
export async function deployWorker(wrangler: Wrangler, secrets: NewSecret[]): Promise<string | null> {
  const folder = mkdtempSync(join(tmpdir(), "hooklane-deploy-"));
  try {
    const file = join(folder, "secrets.json");
    const values = Object.fromEntries(secrets.map(({ name, value }) => [name, value]));
    if (secrets.length > 0) writeFileSync(file, JSON.stringify(values), { mode: 0o600 });
    const secretArgs = secrets.length > 0 ? ["--secrets-file", file] : [];
    const { stdout } = await wrangler.mustRun(["deploy", ...secretArgs], { show: true });
    return /https:\/\/\S+\.workers\.dev/.exec(stdout)?.[0] ?? null;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Makes the bucket's rules what they should be, and looks at them again. Rules of others stay, unless they do harm. */
export async function ensureLifecycle(wrangler: Wrangler, { bucket }: Deployment): Promise<string[]> {
  const listArgs = ["r2", "bucket", "lifecycle", "list", bucket];
  const list = async () => parseLifecycleRules((await wrangler.mustRun(listArgs)).stdout);
  let present = await list();
  const { remove, add } = planRules(present);
  for (const name of remove) {
    await wrangler.mustRun(["r2", "bucket", "lifecycle", "remove", bucket, "--name", name]);
  }
  for (const { name, prefix, expireDays } of add) {
    const rule = [name, prefix, "--expire-days", String(expireDays), "--force"];
    await wrangler.mustRun(["r2", "bucket", "lifecycle", "add", bucket, ...rule]);
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
