/**
 * Runs the Worker of this repository on this machine: Miniflare with D1, R2, Queues and Durable Objects on disk.
 * Used by `npm start`, the demo and the end-to-end tests.
 */
import { join, resolve } from "node:path";
import { build } from "esbuild";
import { listPublishLimiters, PUBLISH_PERIOD_SECONDS, type PublishLimits } from "../src/core/publish-limits.ts";
import { parseSettings } from "../src/env.ts";
import { loadMiniflare, loadWrangler } from "./load-tools.ts";
import { applyMigrations } from "./migrate.ts";
import { loadOrCreateSecretsKey } from "./secrets-key.ts";
import { lockState } from "./state-lock.ts";

const root = resolve(import.meta.dirname, "..");

/** How long the local start script waits between two calls of the scheduled handler: cron never fires locally. */
const CRON_INTERVAL_MS = 60_000;

export interface RelayOptions {
  /** TCP port on 127.0.0.1; 0 takes a free one. */
  port: number;
  /** Folder of D1, R2, object and secret state; made when absent, kept afterwards. */
  stateDir: string;
  /** Settings that win over `wrangler.toml`: OPERATOR_TOKEN, SECRETS_KEY, ALLOW_PRIVATE_DESTINATIONS, … */
  settings?: Record<string, string>;
  /** How many D1 databases tenants are spread over. */
  shards?: number;
  /** Worker entry, `src/index.ts` unless a test wraps it. */
  entry?: string;
  /** How long to wait between two calls of the scheduled handler: a minute, as cron does. */
  cronIntervalMs?: number;
  /** Gets every line the Worker prints; by default they go to this process's standard output. */
  onLog?: (line: string) => void;
}

export interface Relay {
  url: string;
  stop(): Promise<void>;
}

/** What is used of two types that lean on packages which are not installed. */
type WranglerOptions = { workerOptions: { bindings?: Record<string, string> } };
type ScheduledWorker = { scheduled(options: { cron: string }): Promise<unknown> };

export async function startRelay(options: RelayOptions): Promise<Relay> {
  // Local tracing makes calls of objects ten times slower, and nobody reads it here.
  process.env["X_LOCAL_OBSERVABILITY"] ??= "false";
  process.env["WRANGLER_LOG"] ??= "error";
  const stateDir = resolve(options.stateDir);
  const unlock = await lockState(stateDir);
  return startLocked(options, stateDir, unlock).catch((error: unknown) => {
    unlock();
    throw error;
  });
}

async function startLocked(options: RelayOptions, stateDir: string, unlock: () => void): Promise<Relay> {
  const { convertV4MiniflareOptions, Log, LogLevel, Miniflare } = loadMiniflare();
  const { workerOptions } = loadWrangler().unstable_getMiniflareWorkerOptions(
    join(root, "wrangler.toml"),
  ) as WranglerOptions;
  const bindings = {
    ...workerOptions.bindings,
    ...localSettings(stateDir, options.port),
    ...options.settings,
  };
  // The Worker would say so too, but only to its first caller.
  const { PUBLISH_LIMITS: publishLimits } = parseSettings(bindings);
  const databases = shardBindings(options.shards ?? 1);
  const miniflare = new Miniflare(
    convertV4MiniflareOptions({
      ...workerOptions,
      name: "hooklane",
      bindings,
      ratelimits: limitersOf(publishLimits),
      d1Databases: Object.fromEntries(databases.map((name) => [name, { id: name }])),
      modules: [{ type: "ESModule", path: "index.js", contents: await bundle(options.entry ?? "src/index.ts") }],
      // localhost may resolve to either family; the ready line and the README speak of localhost.
      host: "localhost",
      port: options.port,
      logRequests: false,
      log: new Log(LogLevel.ERROR),
      resourcePersistencePath: join(stateDir, "v3"),
      handleStructuredLogs: ({ message }) => (options.onLog ?? console.log)(message),
      // Miniflare starts a runtime that has died again, and says nothing. Its objects have forgotten what they were to do next.
      async unsafeHandleRuntimeRestart() {
        console.error("The runtime ended unexpectedly and was started again.");
        await runCron();
      },
    }),
  );
  const url = await miniflare.ready;
  for (const name of databases) await applyMigrations(await miniflare.getD1Database(name), join(root, "migrations"));

  /** Asks for the worker each time: what it gives of a runtime that has ended throws. */
  async function runCron() {
    try {
      const worker = (await miniflare.getWorker()) as unknown as ScheduledWorker;
      await worker.scheduled({ cron: "* * * * *" });
    } catch (error) {
      console.error("scheduled handler:", error);
    }
  }
  await runCron();
  const cron = setInterval(runCron, options.cronIntervalMs ?? CRON_INTERVAL_MS);

  return {
    url: `http://localhost:${url.port}`,
    async stop() {
      clearInterval(cron);
      await miniflare.dispose();
      unlock();
    },
  };
}

/** Of `wrangler.toml` only the names: the numbers are those of the setting. */
function limitersOf(limits: PublishLimits | null) {
  return Object.fromEntries(
    Object.entries(limits ? listPublishLimiters(limits) : {}).map(([name, limit]) => [
      name,
      { namespace_id: name, simple: { limit, period: PUBLISH_PERIOD_SECONDS as 10 } },
    ]),
  );
}

function shardBindings(count: number): string[] {
  return Array.from({ length: count }, (_, shard) => (shard === 0 ? "DB" : `DB_${shard}`));
}

/** Local defaults of contract §6: the operator token is well known, the key of the secrets is made once and kept. */
function localSettings(stateDir: string, port: number): Record<string, string> {
  return {
    OWN_HOSTS: ["localhost", "127.0.0.1", "0.0.0.0", "[::1]", "[::]"].map((host) => `${host}:${port}`).join(),
    OPERATOR_TOKEN: "dev-operator-token",
    SECRETS_KEY: loadOrCreateSecretsKey(join(stateDir, "secrets-key")),
    ALLOW_PRIVATE_DESTINATIONS: "true",
    // Nobody shares this relay, and benches must not meet a limit they did not set.
    PUBLISH_LIMITS: "off",
    // Miniflare makes up a colo.
    RELAY_REGION: "local",
  };
}

async function bundle(entry: string): Promise<string> {
  const result = await build({
    entryPoints: [join(root, entry)],
    bundle: true,
    write: false,
    format: "esm",
    target: "es2024",
    conditions: ["workerd", "worker", "browser"],
    external: ["cloudflare:*", "node:*"],
    logLevel: "error",
  });
  return result.outputFiles[0]!.text;
}
