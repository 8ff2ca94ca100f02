import { randomBytes } from "node:crypto";
import { parseSecretsKeys } from "../../src/core/secret-box.ts";
import type { Deployment } from "./config.ts";
import { CommandFailed, parseJsonOutput, type Wrangler } from "./wrangler.ts";

const MADE: Record<string, () => string> = {
  OPERATOR_TOKEN: () => randomBytes(32).toString("hex"),
  SECRETS_KEY: () => `k1:${randomBytes(32).toString("base64")}`,
};

export interface NewSecret {
  name: string;
  value: string;
  /** Made here, so nobody else knows it. */
  isMade: boolean;
}

/** The secrets that the Worker lacks: as the environment gives them, or made. One that it has is never touched. */
export async function missingSecrets(
  wrangler: Wrangler,
  deployment: Deployment,
  given: NodeJS.ProcessEnv,
): Promise<NewSecret[]> {
  const present = await listSecrets(wrangler);
  const secrets: NewSecret[] = [];
  for (const name of deployment.requiredSecrets.filter((secret) => !present.has(secret))) {
    const value = given[name];
    if (value) {
      if (name === "SECRETS_KEY" && !parseSecretsKeys(value).ok) {
        throw new Error("SECRETS_KEY in the environment must be id:base64 of 32 bytes, several separated by commas.");
      }
      secrets.push({ name, value, isMade: false });
      continue;
    }
    const make = MADE[name];
    if (!make) throw new Error(`The secret ${name} is missing and cannot be made. Give it: ${name}=… npm run deploy`);
    if (name === "SECRETS_KEY") await refuseNewKey(wrangler, deployment);
    secrets.push({ name, value: make(), isMade: true });
  }
  return secrets;
}

/** Names of the Worker's secrets; none when it does not exist yet. Any other doubt ends the deployment. */
async function listSecrets(wrangler: Wrangler): Promise<Set<string>> {
  const ran = await wrangler.run(["secret", "list", "--format", "json"]);
  if (!ran.ok) {
    if (/Worker "[^"]*".* not found/.test(ran.output)) return new Set();
    throw new CommandFailed(ran);
  }
  return new Set((parseJsonOutput(ran) as { name: string }[]).map(({ name }) => name));
}

/** A new key over a ledger that another has wrapped secrets in would lose every one of them. */
async function refuseNewKey(wrangler: Wrangler, { databases }: Deployment): Promise<void> {
  const sql =
    "select exists (select 1 from signing_secret) or exists (select 1 from source where signing_key is not null) as wrapped";
  for (const { binding, name } of databases) {
    const answers = await wrangler.ask(["d1", "execute", binding, "--remote", "--json", "--command", sql]);
    const [answer] = answers as { results?: { wrapped?: number }[] }[];
    if (answer?.results?.[0]?.wrapped === 0) continue;
    throw new Error(
      `The Worker has no SECRETS_KEY, but database ${name} holds secrets that one has wrapped. A new key would lose them ` +
        "all: give the old one, as in SECRETS_KEY=k1:… npm run deploy",
    );
  }
}
