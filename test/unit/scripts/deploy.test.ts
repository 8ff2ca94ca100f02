import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { deploy } from "../../../scripts/deploy/deploy.ts";
import { createDatabases, migrate } from "../../../scripts/deploy/steps.ts";
import { createWrangler, root } from "../../../scripts/deploy/wrangler.ts";
import { createFakeAccount, createFakeWrangler, type FakeAccount } from "./support/fake-wrangler.ts";

const RULES = [1, 3, 7, 14, 30, 60, 90, 180, 365].map((days) => `hooklane-${days}d`);
const DEAD_QUEUES = ["hooklane-first-attempts-dead", "hooklane-retries-dead", "hooklane-outcomes-dead"];

/** Deploys to the account; its record holds the calls of this run alone. */
async function deployTo(account: FakeAccount, args: string[] = [], env: Record<string, string> = {}) {
  Object.assign(account, { calls: [], configs: [], secretsFile: null });
  let printed = "";
  const print = (text: string) => void (printed += text);
  const line = (text: string) => print(`${text}\n`);
  const run = createFakeWrangler(account, print);
  const code = await deploy(args, { run, env, console: { log: line, error: line } });
  return { code, printed, calls: account.calls };
}

const EXPIRE_DAYS = [3, 7, 14, 30, 60, 90, 180, 365, 455];
/** The rules of these names, as they should be. */
const ruled = (names: string[]) =>
  names.map((name) => ({
    name,
    enabled: true,
    prefix: `${name.slice(9)}/`,
    action: `Expire objects after ${EXPIRE_DAYS[RULES.indexOf(name)]} days`,
  }));

const printedSecrets = (printed: string) =>
  Object.fromEntries([...printed.matchAll(/^ {2}([A-Z_]+)=(\S+)$/gm)].map(([, name, value]) => [name, value]));

test("a fresh account: databases, queues, tables, then code and secrets in one step, then rules; then what is left", async () => {
  const account = createFakeAccount();
  const { code, printed, calls } = await deployTo(account);
  expect(printed).toContain("Deployed at https://hooklane.acme.workers.dev.");
  expect(code).toBe(0);
  expect(calls).toEqual([
    "d1 list --json",
    "d1 create hooklane",
    ...DEAD_QUEUES.flatMap((queue) => [`queues info ${queue}`, `queues create ${queue}`]),
    "d1 migrations apply DB --remote",
    "secret list --format json",
    expect.stringMatching(/^d1 execute DB --remote --json --command select exists/),
    "deploy --secrets-file FILE",
    "r2 bucket lifecycle list hooklane-payloads",
    ...EXPIRE_DAYS.map((days, i) => {
      const name = RULES[i]!;
      return `r2 bucket lifecycle add hooklane-payloads ${name} ${name.slice(9)}/ --expire-days ${days} --force`;
    }),
    "r2 bucket lifecycle list hooklane-payloads",
  ]);
  // Shown once, strong, and exactly what was stored.
  const secrets = printedSecrets(printed);
  expect(secrets).toEqual(account.worker!.secrets);
  expect(secrets["OPERATOR_TOKEN"]).toMatch(/^[0-9a-f]{64}$/);
  expect(Buffer.from(secrets["SECRETS_KEY"]!.replace("k1:", ""), "base64")).toHaveLength(32);
  // Nobody else could read the file, and it is gone.
  expect(account.secretsFile!.mode).toBe("600");
  expect(existsSync(account.secretsFile!.path)).toBe(false);
  for (const left of ['OWN_HOSTS = "hooklane.acme.workers.dev"', "LEDGER_LOCATION", "custom_domain"]) {
    expect(printed).toContain(left);
  }
});

test("a second run migrates, deploys, and otherwise only looks: secrets are neither made, nor shown, nor touched", async () => {
  const account = createFakeAccount();
  await deployTo(account);
  const before = account.worker!;
  const given = { OPERATOR_TOKEN: "another", SECRETS_KEY: `k9:${Buffer.alloc(32).toString("base64")}` };
  const { code, printed, calls } = await deployTo(account, [], given);
  expect(code).toBe(0);
  expect(calls).toEqual([
    "d1 list --json",
    ...DEAD_QUEUES.map((queue) => `queues info ${queue}`),
    "d1 migrations apply DB --remote",
    "secret list --format json",
    "deploy",
    "r2 bucket lifecycle list hooklane-payloads",
  ]);
  expect(printedSecrets(printed)).toEqual({});
  expect(account.worker).toEqual({ secrets: before.secrets, deploys: 2 });
});

test.each([
  ["Databases", "d1 create"],
  ["Queues", "queues create hooklane-outcomes-dead"],
  ["Migrations", "d1 migrations apply"],
  ["Secrets", "secret list"],
  ["Worker", "deploy"],
  ["Lifecycle rules", "r2 bucket lifecycle add hooklane-payloads hooklane-14d"],
])("stopped at %s by a failing `%s` it says so, does no later step, and run again it ends", async (step, command) => {
  const failing = { command, message: "The service is away.", done: false };
  const account = createFakeAccount({ failing, rules: ruled(RULES.filter((name) => name !== "hooklane-14d")) });
  const stopped = await deployTo(account);
  expect(stopped.code).toBe(1);
  expect(stopped.printed).toContain(`Stopped at: ${step}.`);
  expect(stopped.printed).toContain(`wrangler ${command}`);
  expect(stopped.printed).toContain("The service is away.");
  expect(stopped.printed).toContain("run the same command again");
  expect(stopped.calls.at(-1)).toMatch(new RegExp(`^${command}`));
  expect(account.worker !== null).toBe(step === "Lifecycle rules");

  account.failing = null;
  expect((await deployTo(account)).code).toBe(0);
  const { databases, queues, worker, rules } = account;
  expect(databases).toEqual({ hooklane: { location: null, migrated: true, wrapped: false } });
  expect(queues.toSorted()).toEqual(DEAD_QUEUES.toSorted());
  expect(Object.keys(worker!.secrets).toSorted()).toEqual(["OPERATOR_TOKEN", "SECRETS_KEY"]);
  expect(rules.map(({ name }) => name).toSorted()).toEqual(RULES.toSorted());
});

test("secrets of a deployment whose answer was lost were shown before it, and hold afterwards", async () => {
  const account = createFakeAccount({
    failing: { command: "deploy", message: "fetch failed", done: true },
    rules: ruled(RULES),
  });
  const lost = await deployTo(account);
  expect(lost.code).toBe(1);
  account.failing = null;
  const again = await deployTo(account);
  expect(again.code).toBe(0);
  expect(printedSecrets(again.printed)).toEqual({});
  expect(account.worker!.secrets).toEqual(printedSecrets(lost.printed));
});

test("secrets that the environment gives are taken where one is missing, and not shown; a malformed key stops it", async () => {
  const account = createFakeAccount({ rules: ruled(RULES) });
  const given = { OPERATOR_TOKEN: "mine", SECRETS_KEY: `old:${Buffer.alloc(32, 1).toString("base64")}` };
  expect(await deployTo(account, [], { ...given, SECRETS_KEY: "old:short" })).toMatchObject({ code: 1 });
  expect(account.worker).toBeNull();
  const { code, printed } = await deployTo(account, [], given);
  expect(code).toBe(0);
  expect(account.worker!.secrets).toEqual(given);
  expect(printed).not.toContain(given.SECRETS_KEY);
});

test("over a ledger that holds wrapped secrets no key is made: the old one is asked for", async () => {
  const account = createFakeAccount({
    databases: { hooklane: { location: null, migrated: true, wrapped: true } },
    rules: ruled(RULES),
  });
  const refused = await deployTo(account);
  expect(refused.code).toBe(1);
  expect(refused.printed).toContain("A new key would lose them all: give the old one");
  expect(account.worker).toBeNull();
  const key = `old:${Buffer.alloc(32, 1).toString("base64")}`;
  expect((await deployTo(account, [], { SECRETS_KEY: key })).code).toBe(0);
  expect(account.worker!.secrets["SECRETS_KEY"]).toBe(key);
});

test("rules of ours that say something else are put right; others stay, unless they would delete what is needed", async () => {
  const multipart = {
    name: "Default Multipart Abort Rule",
    enabled: true,
    prefix: "",
    action: "Abort incomplete multipart uploads after 7 days",
  };
  const wrong = { name: "hooklane-30d", enabled: true, prefix: "30d/", action: "Expire objects after 31 days" };
  const account = createFakeAccount({
    rules: [multipart, wrong, ...ruled(RULES.filter((name) => name !== wrong.name))],
  });
  expect((await deployTo(account)).code).toBe(0);
  const { rules } = account;
  expect(rules).toContainEqual(multipart);
  expect(rules.filter(({ name }) => name === "hooklane-30d")).toEqual([
    { ...wrong, action: "Expire objects after 60 days" },
  ]);
  rules.push({ name: "tidy", enabled: true, prefix: "", action: "Expire objects after 7 days" });
  const { code, printed } = await deployTo(account);
  expect(code).toBe(1);
  expect(printed).toContain('"tidy" (whole bucket: Expire objects after 7 days)');
  expect(printed).toContain("lifecycle remove hooklane-payloads --name NAME");
});

test("an environment is a relay of its own: every name has its suffix, and every command its configuration", async () => {
  const account = createFakeAccount({ rules: ruled(RULES) });
  const { code, calls } = await deployTo(account, ["--env", "staging"]);
  expect(code).toBe(0);
  const { databases, queues, configs } = account;
  expect(Object.keys(databases)).toEqual(["hooklane-staging"]);
  expect(queues).toEqual(DEAD_QUEUES.map((queue) => `${queue}-staging`));
  expect(calls).toContain("r2 bucket lifecycle list hooklane-payloads-staging");
  expect(new Set(configs)).toEqual(new Set([join(root, ".wrangler/environments/staging.json")]));
});

test("each shard's database is made, near where the ledger is to be, and migrated, before any code", async () => {
  const account = createFakeAccount();
  const wrangler = createWrangler(
    createFakeWrangler(account, () => {}),
    [],
  );
  const deployment = {
    name: "hooklane",
    databases: [
      { binding: "DB", name: "hooklane" },
      { binding: "DB_1", name: "hooklane-1" },
    ],
    bucket: "b",
    consumedQueues: [],
    requiredSecrets: [],
    vars: { LEDGER_LOCATION: "weur" },
    hasRoute: false,
  };
  expect(await createDatabases(wrangler, deployment)).toEqual(["hooklane", "hooklane-1"]);
  await migrate(wrangler, deployment);
  const made = { location: "weur", migrated: true, wrapped: false };
  expect(account.databases).toEqual({ hooklane: made, "hooklane-1": made });
});

test("what the script does not know is refused before anything is done", async () => {
  for (const args of [["--env", "Prod!"], ["--force"]]) {
    const account = createFakeAccount();
    const { code, printed, calls } = await deployTo(account, args);
    expect(code).toBe(2);
    expect(printed).toContain("Usage: npm run deploy");
    expect(calls).toEqual([]);
  }
});
