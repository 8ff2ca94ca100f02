import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startFakeCloudflare, type FakeCloudflare } from "./support/fake-cloudflare.ts";

const root = resolve(import.meta.dirname, "../..");

/** Nothing of the person who runs the tests is seen: neither their account nor their login. */
const home = mkdtempSync(join(tmpdir(), "hooklane-deploy-home-"));
let cloudflare: FakeCloudflare;
beforeAll(async () => {
  cloudflare = await startFakeCloudflare();
});
afterAll(async () => {
  await cloudflare.close();
  rmSync(home, { recursive: true, force: true });
});

/** The real script with the real wrangler. */
async function deploy(...args: string[]): Promise<{ code: unknown; printed: string }> {
  const { OPERATOR_TOKEN: _token, SECRETS_KEY: _key, ...rest } = process.env;
  const child = spawn(process.execPath, ["scripts/deploy.ts", ...args], {
    cwd: root,
    env: {
      ...rest,
      HOME: home,
      XDG_CONFIG_HOME: home,
      CI: "1",
      CLOUDFLARE_API_BASE_URL: cloudflare.url,
      CLOUDFLARE_API_TOKEN: "token",
      CLOUDFLARE_ACCOUNT_ID: "account",
      WRANGLER_LOG: "log",
    },
  });
  let printed = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => void (printed += text));
  return { code: await new Promise((ended) => child.once("close", ended)), printed };
}

describe("wrangler itself, against an account in memory,", () => {
  let secrets: Map<string, string>;

  test("makes a whole relay on a fresh account: tables before code, all that the code is bound to, and its rules", async () => {
    const { account, asked } = cloudflare;
    // So that fewer commands are run; the other tests make all of them.
    account.queues.add("hooklane-retries-dead").add("hooklane-outcomes-dead");
    account.buckets.set("hooklane-payloads", { rules: [...otherRules()] });
    const { code, printed } = await deploy();
    expect(printed).toContain("Deployed at https://hooklane.acme.workers.dev.");
    expect(code).toBe(0);

    const { db } = account.databases.get("hooklane")!;
    const tables = db.prepare("select name from sqlite_master where type = 'table'").all();
    expect(tables.map(({ name }) => name)).toEqual(expect.arrayContaining(["event", "delivery", "attempt"]));
    const lastQuery = asked.findLastIndex((one) => one.startsWith("POST /d1/"));
    expect(lastQuery).toBeLessThan(asked.indexOf("PUT /workers/scripts/hooklane"));

    const worker = account.workers.get("hooklane")!;
    secrets = new Map(worker.secrets);
    for (const [name, value] of secrets) expect(printed.split(`${name}=${value}`)).toHaveLength(2);
    expect([...secrets.keys()].toSorted()).toEqual(["OPERATOR_TOKEN", "SECRETS_KEY"]);
    const bound = worker.bindings.map(({ type, name }) => `${type} ${name}`);
    for (const binding of ["d1 DB", "r2_bucket PAYLOADS", "queue FIRST_ATTEMPTS", "queue RETRIES", "queue OUTCOMES"]) {
      expect(bound).toContain(binding);
    }
    expect([...account.queues].toSorted()).toEqual(
      ["first-attempts", "retries", "outcomes"]
        .flatMap((name) => [`hooklane-${name}`, `hooklane-${name}-dead`])
        .toSorted(),
    );
    const consumers = asked.filter((one) => /^POST \/queues\/[^/]+\/consumers$/.test(one));
    expect(consumers).toHaveLength(6);
    const { rules } = account.buckets.get("hooklane-payloads")!;
    expect(rules.find(({ id }) => id === "hooklane-30d")).toMatchObject({
      enabled: true,
      conditions: { prefix: "30d/" },
      deleteObjectsTransition: { condition: { type: "Age", maxAge: 60 * 86_400 } },
    });
  });

  test("deploys again without making or changing anything but the code", async () => {
    const { account } = cloudflare;
    const before = JSON.stringify([[...account.queues], [...account.buckets], [...account.databases.keys()]]);
    cloudflare.asked.length = 0;
    const { code, printed } = await deploy();
    expect(code).toBe(0);
    expect(printed).toContain("No migrations to apply!");
    expect(account.workers.get("hooklane")).toMatchObject({ uploads: 2, secrets });
    expect(JSON.stringify([[...account.queues], [...account.buckets], [...account.databases.keys()]])).toBe(before);
    const written = cloudflare.asked.filter((one) => !one.startsWith("GET ") && !/\/(query|consumers)$/.test(one));
    expect(written).toEqual([
      "PUT /workers/scripts/hooklane",
      "POST /workers/scripts/hooklane/subdomain",
      "PUT /workers/scripts/hooklane/schedules",
    ]);
  });

  test("that is not let in ends the deployment with what to do", async () => {
    cloudflare.fault = () => ({ status: 403, code: 10000, message: "Authentication error" });
    const { code, printed } = await deploy();
    cloudflare.fault = null;
    expect(code).toBe(1);
    expect(printed).toContain("Stopped at: Databases.");
    expect(printed).toContain("npx wrangler login");
  });
});

test("a dry run of an environment builds it under names of its own, and asks nobody", async () => {
  cloudflare.asked.length = 0;
  const { code, printed } = await deploy("--env", "staging", "--dry-run");
  expect(code).toBe(0);
  expect(printed).toContain("env.DB (hooklane-staging)");
  expect(printed).toContain("env.PAYLOADS (hooklane-payloads-staging)");
  expect(printed).toContain("env.RETRIES (hooklane-retries-staging)");
  expect(cloudflare.asked).toEqual([]);
});

/** All but the rule of 30 days. */
function otherRules() {
  const classes = [1, 3, 7, 14, 30, 60, 90, 180, 365, 455];
  return classes.slice(0, -1).flatMap((days, i) =>
    days === 30
      ? []
      : [
          {
            id: `hooklane-${days}d`,
            enabled: true,
            conditions: { prefix: `${days}d/` },
            deleteObjectsTransition: { condition: { type: "Age", maxAge: classes[i + 1]! * 86_400 } },
          },
        ],
  );
}
