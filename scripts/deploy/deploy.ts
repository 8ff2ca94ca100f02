import { parseArgs } from "node:util";
import { describeDeployment, type Deployment, forEnvironment, readWranglerToml, writeEnvironment } from "./config.ts";
import { missingSecrets, type NewSecret } from "./secrets.ts";
import { createDatabases, createQueues, deployWorker, ensureLifecycle, migrate } from "./steps.ts";
import { CommandFailed, createWrangler, type RunWrangler } from "./wrangler.ts";

/** What it says goes to `log`, what is wrong to `error`. */
type Terminal = Pick<Console, "log" | "error">;

export interface DeployDeps {
  run: RunWrangler;
  /** May give the secrets. */
  env: Record<string, string | undefined>;
  console: Terminal;
}

interface Arguments {
  environment: string | null;
  isDryRun: boolean;
}

/** Gives back the exit code: 2 where the arguments are not understood, 1 where it stopped half-way. */
export async function deploy(argv: string[], { run, env, console }: DeployDeps): Promise<number> {
  const given = readArguments(argv, console);
  if (given === null) return 2;
  const { environment, isDryRun } = given;
  let step = "Reading wrangler.toml";
  const begin = (name: string) => {
    step = name;
    console.log(`\n== ${name}`);
  };
  const report = (made: string[]) => console.log(made.length > 0 ? `Made: ${made.join(", ")}` : "All there.");

  try {
    const base = readWranglerToml();
    const config = environment === null ? base : forEnvironment(base, environment);
    const file = environment === null ? ["wrangler.toml", "--env", ""] : [writeEnvironment(config, environment)];
    const deployment = describeDeployment(config);
    const wrangler = createWrangler(run, ["--config", ...file]);

    if (isDryRun) {
      begin("Dry run");
      await wrangler.mustRun(["deploy", "--dry-run", "--outdir", ".wrangler/dry-run"], { show: true });
      console.log("Nothing was changed.");
      return 0;
    }
    begin("Databases");
    report(await createDatabases(wrangler, deployment));
    begin("Queues");
    report(await createQueues(wrangler, deployment));
    begin("Migrations");
    await migrate(wrangler, deployment);
    begin("Secrets");
    const secrets = await missingSecrets(wrangler, deployment, env);
    tellSecrets(console, secrets);
    begin("Worker");
    const url = await deployWorker(wrangler, secrets);
    begin("Lifecycle rules");
    report(await ensureLifecycle(wrangler, deployment));
    console.log(`\nDeployed${url === null ? "" : ` at ${url}`}.`);
    tellWhatIsLeft(console, environment, deployment, secrets, url);
    return 0;
  } catch (error) {
    console.error(`\nStopped at: ${step}.`);
    console.error((error as Error).message);
    const output = error instanceof CommandFailed ? error.output.trim() : "";
    if (output !== "") console.error(output);
    if (/log ?in|authenticat|API token|CLOUDFLARE_API_TOKEN/i.test(output)) {
      console.error("Log in with `npx wrangler login`, or set CLOUDFLARE_API_TOKEN and CLOUDFLARE_ACCOUNT_ID.");
    }
    console.error("What is done stays done. Once this is put right, run the same command again: it goes on from here.");
    return 1;
  }
}

/** Before they are stored: whoever loses the answer of a deployment must not lose them with it. */
function tellSecrets(console: Terminal, secrets: NewSecret[]): void {
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

function tellWhatIsLeft(
  console: Terminal,
  environment: string | null,
  { vars, hasRoute }: Deployment,
  secrets: NewSecret[],
  url: string | null,
): void {
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
  if (left.length === 0) return;
  console.log("\nLeft to you; wrangler.toml is where it goes, and another deployment takes it up:");
  for (const line of left) console.log(`- ${line}`);
}

function readArguments(argv: string[], console: Terminal): Arguments | null {
  try {
    const options = { env: { type: "string" }, "dry-run": { type: "boolean" } } as const;
    const { values } = parseArgs({ args: argv, options });
    const environment = values.env ?? null;
    if (environment !== null && !/^[a-z0-9][a-z0-9-]{0,19}$/.test(environment)) {
      throw new Error("An environment is named in up to 20 small letters, digits and dashes.");
    }
    return { environment, isDryRun: values["dry-run"] ?? false };
  } catch (error) {
    console.error(`${(error as Error).message}\nUsage: npm run deploy -- [--env NAME] [--dry-run]`);
    return null;
  }
}
