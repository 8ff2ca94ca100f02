import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { onTestFinished, expect, test } from "vitest";
import { createDatabases, migrate } from "../../scripts/deploy/steps.ts";
import type { FakeState } from "./support/fake-wrangler.ts";

const root = resolve(import.meta.dirname, "../..");
const RULES = [1, 3, 7, 14, 30, 60, 90, 180, 365].map((days) => `hooklane-${days}d`);
const DEAD_QUEUES = ["hooklane-first-attempts-dead", "hooklane-retries-dead", "hooklane-outcomes-dead"];

/** An account that the real deploy script finds behind a `wrangler` of our own on PATH. */
function createAccount(over: Partial<FakeState> = {}) {
  const folder = mkdtempSync(join(tmpdir(), "hooklane-deploy-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const stateFile = join(folder, "state.json");
  const bin = join(folder, "bin");
  mkdirSync(bin);
  const script = join(root, "test/e2e/support/fake-wrangler.ts");
  writeFileSync(join(bin, "wrangler"), `#!/bin/sh\nexec "${process.execPath}" "${script}" "$@"\n`, { mode: 0o755 });
  const write = (state: FakeState) => writeFileSync(stateFile, JSON.stringify(state));
  const read = () => JSON.parse(readFileSync(stateFile, "utf8")) as FakeState;
  write({
    databases: {},
    queues: [],
    worker: null,
    rules: [],
    calls: [],
    configs: [],
    failing: null,
    secretsFile: null,
    ...over,
  });
  const env = {
    PATH: `${bin}${delimiter}${process.env["PATH"]}`,
    FAKE_WRANGLER_STATE: stateFile,
  };
  return {
    env,
    read,
    change: (part: Partial<FakeState>) => write({ ...read(), ...part }),
    /** Runs `scripts/deploy.ts`; the calls of this run alone are left on record. */
    async deploy(args: string[] = [], extra: Record<string, string> = {}) {
      write({ ...read(), calls: [], configs: [], secretsFile: null });
      const { OPERATOR_TOKEN: _token, SECRETS_KEY: _key, ...rest } = process.env;
      const child = spawn(process.execPath, ["scripts/deploy.ts", ...args], {
        cwd: root,
        env: { ...rest, ...env, ...extra },
      });
      let printed = "";
      for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => void (printed += text));
      const code = await new Promise((ended) => child.once("close", ended));
      return { code, printed, calls: read().calls };
    },
  };
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
  const account = createAccount();
  const { code, printed, calls } = await account.deploy();
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
  expect(secrets).toEqual(account.read().worker!.secrets);
  expect(secrets["OPERATOR_TOKEN"]).toMatch(/^[0-9a-f]{64}$/);
  expect(Buffer.from(secrets["SECRETS_KEY"]!.replace("k1:", ""), "base64")).toHaveLength(32);
  // Nobody else could read the file, and it is gone.
  expect(account.read().secretsFile!.mode).toBe("600");
  expect(existsSync(account.read().secretsFile!.path)).toBe(false);
  for (const left of ['OWN_HOSTS = "hooklane.acme.workers.dev"', "LEDGER_LOCATION", "custom_domain"]) {
    expect(printed).toContain(left);
  }
});

test("a second run migrates, deploys, and otherwise only looks: secrets are neither made, nor shown, nor touched", async () => {
  const account = createAccount();
  await account.deploy();
  const before = account.read();
  const given = { OPERATOR_TOKEN: "another", SECRETS_KEY: `k9:${Buffer.alloc(32).toString("base64")}` };
  const { code, printed, calls } = await account.deploy([], given);
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
  expect(account.read().worker).toEqual({ secrets: before.worker!.secrets, deploys: 2 });
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
  const account = createAccount({ failing, rules: ruled(RULES.filter((name) => name !== "hooklane-14d")) });
  const stopped = await account.deploy();
  expect(stopped.code).toBe(1);
  expect(stopped.printed).toContain(`Stopped at: ${step}.`);
  expect(stopped.printed).toContain(`wrangler ${command}`);
  expect(stopped.printed).toContain("The service is away.");
  expect(stopped.printed).toContain("run the same command again");
  expect(stopped.calls.at(-1)).toMatch(new RegExp(`^${command}`));
  expect(account.read().worker !== null).toBe(step === "Lifecycle rules");

  account.change({ failing: null });
  expect((await account.deploy()).code).toBe(0);
  const { databases, queues, worker, rules } = account.read();
  expect(databases).toEqual({ hooklane: { location: null, migrated: true, wrapped: false } });
  expect(queues.toSorted()).toEqual(DEAD_QUEUES.toSorted());
  expect(Object.keys(worker!.secrets).toSorted()).toEqual(["OPERATOR_TOKEN", "SECRETS_KEY"]);
  expect(rules.map(({ name }) => name).toSorted()).toEqual(RULES.toSorted());
});

test("secrets of a deployment whose answer was lost were shown before it, and hold afterwards", async () => {
  const account = createAccount({
    failing: { command: "deploy", message: "fetch failed", done: true },
    rules: ruled(RULES),
  });
  const lost = await account.deploy();
  expect(lost.code).toBe(1);
  account.change({ failing: null });
  const again = await account.deploy();
  expect(again.code).toBe(0);
  expect(printedSecrets(again.printed)).toEqual({});
  expect(account.read().worker!.secrets).toEqual(printedSecrets(lost.printed));
});

test("secrets that the environment gives are taken where one is missing, and not shown; a malformed key stops it", async () => {
  const account = createAccount({ rules: ruled(RULES) });
  const given = { OPERATOR_TOKEN: "mine", SECRETS_KEY: `old:${Buffer.alloc(32, 1).toString("base64")}` };
  expect(await account.deploy([], { ...given, SECRETS_KEY: "old:short" })).toMatchObject({ code: 1 });
  expect(account.read().worker).toBeNull();
  const { code, printed } = await account.deploy([], given);
  expect(code).toBe(0);
  expect(account.read().worker!.secrets).toEqual(given);
  expect(printed).not.toContain(given.SECRETS_KEY);
});

test("over a ledger that holds wrapped secrets no key is made: the old one is asked for", async () => {
  const account = createAccount({
    databases: { hooklane: { location: null, migrated: true, wrapped: true } },
    rules: ruled(RULES),
  });
  const refused = await account.deploy();
  expect(refused.code).toBe(1);
  expect(refused.printed).toContain("A new key would lose them all: give the old one");
  expect(account.read().worker).toBeNull();
  const key = `old:${Buffer.alloc(32, 1).toString("base64")}`;
  expect((await account.deploy([], { SECRETS_KEY: key })).code).toBe(0);
  expect(account.read().worker!.secrets["SECRETS_KEY"]).toBe(key);
});

test("rules of ours that say something else are put right; others stay, unless they would delete what is needed", async () => {
  const multipart = {
    name: "Default Multipart Abort Rule",
    enabled: true,
    prefix: "",
    action: "Abort incomplete multipart uploads after 7 days",
  };
  const wrong = { name: "hooklane-30d", enabled: true, prefix: "30d/", action: "Expire objects after 31 days" };
  const account = createAccount({
    rules: [multipart, wrong, ...ruled(RULES.filter((name) => name !== wrong.name))],
  });
  expect((await account.deploy()).code).toBe(0);
  const { rules } = account.read();
  expect(rules).toContainEqual(multipart);
  expect(rules.filter(({ name }) => name === "hooklane-30d")).toEqual([
    { ...wrong, action: "Expire objects after 60 days" },
  ]);
  account.change({
    rules: [...rules, { name: "tidy", enabled: true, prefix: "", action: "Expire objects after 7 days" }],
  });
  const { code, printed } = await account.deploy();
  expect(code).toBe(1);
  expect(printed).toContain('"tidy" (whole bucket: Expire objects after 7 days)');
  expect(printed).toContain("lifecycle remove hooklane-payloads --name NAME");
});

test("an environment is a relay of its own: every name has its suffix, and every command its configuration", async () => {
  const account = createAccount({ rules: ruled(RULES) });
  const { code, calls } = await account.deploy(["--env", "staging"]);
  expect(code).toBe(0);
  const { databases, queues, configs } = account.read();
  expect(Object.keys(databases)).toEqual(["hooklane-staging"]);
  expect(queues).toEqual(DEAD_QUEUES.map((queue) => `${queue}-staging`));
  expect(calls).toContain("r2 bucket lifecycle list hooklane-payloads-staging");
  expect(new Set(configs)).toEqual(new Set([join(root, ".wrangler/environments/staging.json")]));
});

test("each shard's database is made, near where the ledger is to be, and migrated, before any code", async () => {
  const account = createAccount();
  const before = { ...process.env };
  onTestFinished(() => void Object.assign(process.env, before));
  Object.assign(process.env, account.env);
  const deployment = {
    name: "hooklane",
    configArgs: ["--config", "wrangler.toml"],
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
  expect(await createDatabases(deployment)).toEqual(["hooklane", "hooklane-1"]);
  await migrate(deployment);
  const made = { location: "weur", migrated: true, wrapped: false };
  expect(account.read().databases).toEqual({ hooklane: made, "hooklane-1": made });
});

test("what the script does not know is refused before anything is done", async () => {
  for (const args of [["--env", "Prod!"], ["--force"]]) {
    const account = createAccount();
    const { code, printed, calls } = await account.deploy(args);
    expect(code).toBe(2);
    expect(printed).toContain("Usage: npm run deploy");
    expect(calls).toEqual([]);
  }
});
