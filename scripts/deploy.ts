/**
 * `npm run deploy -- [--env NAME] [--dry-run]`: makes what is missing in the Cloudflare account, and deploys. Every step
 * looks first and changes only what is not so, so it may be run again at any time, also after it stopped half-way.
 */
import { parseArgs } from "node:util";
import { describeDeployment, forEnvironment, readWranglerToml, writeEnvironment } from "./deploy/config.ts";
import { missingSecrets, type NewSecret } from "./deploy/secrets.ts";
import { createDatabases, createQueues, deployWorker, ensureLifecycle, migrate } from "./deploy/steps.ts";
import { CommandFailed, mustRun } from "./deploy/wrangler.ts";

const { environment, isDryRun } = readArguments();
let step = "Reading wrangler.toml";

try {
  const base = readWranglerToml();
  const config = environment === null ? base : forEnvironment(base, environment);
  const file = environment === null ? ["wrangler.toml", "--env", ""] : [writeEnvironment(config, environment)];
  const deployment = describeDeployment(config, ["--config", ...file]);

  if (isDryRun) {
    begin("Dry run");
    await mustRun(["deploy", "--dry-run", "--outdir", ".wrangler/dry-run", ...deployment.configArgs], { show: true });
    console.log("Nothing was changed.");
    process.exit(0);
  }
  begin("Databases");
  report(await createDatabases(deployment));
  begin("Queues");
  report(await createQueues(deployment));
  begin("Migrations");
  await migrate(deployment);
  begin("Secrets");
  const secrets = await missingSecrets(deployment, process.env);
  tellSecrets(secrets);
  begin("Worker");
  const url = await deployWorker(deployment, secrets);
  begin("Lifecycle rules");
  report(await ensureLifecycle(deployment));
  tellWhatIsLeft(deployment.vars, deployment.hasRoute, secrets, url);
} catch (error) {
  console.error(`\nStopped at: ${step}.`);
  console.error((error as Error).message);
  if (error instanceof CommandFailed && error.output !== "") console.error(error.output.trim());
  if (/log ?in|authenticat|API token|CLOUDFLARE_API_TOKEN/i.test(error instanceof CommandFailed ? error.output : "")) {
    console.error("Log in with `npx wrangler login`, or set CLOUDFLARE_API_TOKEN and CLOUDFLARE_ACCOUNT_ID.");
  }
  console.error("What is done stays done. Once this is put right, run the same command again: it goes on from here.");
  process.exit(1);
}

function begin(name: string): void {
  step = name;
  console.log(`\n== ${name}`);
}

function report(made: string[]): void {
  console.log(made.length > 0 ? `Made: ${made.join(", ")}` : "All there.");
}

/** Before they are stored: whoever loses the answer of a deployment must not lose them with it. */
function tellSecrets(secrets: NewSecret[]): void {
  if (secrets.length === 0) return console.log("All there, and left as they are.");
  for (const { name } of secrets.filter(({ isMade }) => !isMade)) console.log(`${name}: from the environment`);
  const made = secrets.filter(({ isMade }) => isMade);
  if (made.length === 0) return;
  console.log(
    "Made now, and shown this once. They hold from the next step on; if that fails, the next run makes others:",
  );
  for (const { name, value } of made) console.log(`  ${name}=${value}`);
  console.log("Keep a copy outside Cloudflare: without SECRETS_KEY every endpoint's signing secret is lost.");
}

function tellWhatIsLeft(vars: Record<string, string>, hasRoute: boolean, secrets: NewSecret[], url: string | null) {
  const section = environment === null ? "[vars]" : `[env.${environment}.vars]`;
  const host = url?.replace("https://", "") ?? "hooks.example.com";
  const left = [
    ...(vars["OWN_HOSTS"]
      ? []
      : [`OWN_HOSTS = "${host}" in ${section}: where this relay answers, so that no endpoint points back at it`]),
    ...(vars["LEDGER_LOCATION"]
      ? []
      : [`LEDGER_LOCATION in ${section}: where the database is, so that lanes stand near it (docs/operations.md)`]),
    ...(hasRoute
      ? []
      : [
          `a domain of your own, if you want one: routes = [{ pattern = "hooks.example.com", custom_domain = true }]` +
            (environment === null ? "" : ` in [env.${environment}]`),
        ]),
    ...(secrets.some(({ isMade }) => isMade) ? ["put the secrets above where you keep such things"] : []),
  ];
  console.log(`\nDeployed${url === null ? "" : ` at ${url}`}.`);
  if (left.length === 0) return;
  console.log("\nLeft to you; wrangler.toml is where it goes, and another deployment takes it up:");
  for (const line of left) console.log(`- ${line}`);
}

function readArguments(): { environment: string | null; isDryRun: boolean } {
  try {
    const { values } = parseArgs({ options: { env: { type: "string" }, "dry-run": { type: "boolean" } } });
    const environment = values.env ?? null;
    if (environment !== null && !/^[a-z0-9][a-z0-9-]{0,19}$/.test(environment)) {
      throw new Error("An environment is named in up to 20 small letters, digits and dashes.");
    }
    return { environment, isDryRun: values["dry-run"] ?? false };
  } catch (error) {
    console.error(`${(error as Error).message}\nUsage: npm run deploy -- [--env NAME] [--dry-run]`);
    process.exit(2);
  }
}
