/**
 * Runs the Worker of this repository on this machine: Miniflare with D1, R2, Queues and Durable Objects on disk.
 * Used by `npm start`, the demo and the end-to-end tests.
 */
import { join, resolve } from "node:path";
import { build } from "esbuild";
import { listPublishLimiters, PUBLISH_PERIOD_SECONDS, type PublishLimits } from "../src/core/publish-limits.ts";
import { parseSettings } from "../src/env.ts";
import { loadMiniflare, loadWrangler } from "./load-tools.ts";
import { applyMigrations, createMigrationMark } from "./migrate.ts";
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
  /** Where developer tools may attach to the Worker; nowhere unless given. */
  inspectorPort?: number;
  /** How long to wait between two calls of the scheduled handler: a minute, as cron does. */
  cronIntervalMs?: number;
  /** Gets every line the Worker prints; by default they go to this process's standard output. */
  onLog?: (line: string) => void;
}

export interface Relay {
  url: string;
  stop(): Promise<void>;
}

/** What is used of a type that leans on packages which are not installed. */
type WranglerOptions = { workerOptions: { bindings?: Record<string, string>; compatibilityDate?: string } };

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
  const d1Databases = Object.fromEntries(databases.map((name) => [name, { id: name }]));
  const resourcePersistencePath = join(stateDir, "v3");
  const [contents] = await Promise.all([
    bundle(options.entry ?? "src/index.ts"),
    migrate({ compatibilityDate: workerOptions.compatibilityDate, d1Databases, resourcePersistencePath }),
  ]);
  const miniflare = new Miniflare(
    convertV4MiniflareOptions({
      ...workerOptions,
      name: "hooklane",
      bindings,
      ratelimits: limitersOf(publishLimits),
      d1Databases,
      modules: [{ type: "ESModule", path: "index.js", contents }],
      // localhost may resolve to either family; the ready line and the README speak of localhost.
      host: "localhost",
      port: options.port,
      ...(options.inspectorPort !== undefined && { inspectorPort: options.inspectorPort }),
      logRequests: false,
      log: new Log(LogLevel.ERROR),
      resourcePersistencePath,
      // For cron, below.
      unsafeTriggerHandlers: true,
      handleStructuredLogs: ({ message }) => (options.onLog ?? console.log)(message),
      // Miniflare starts a runtime that has died again, and says nothing. Its objects have forgotten what they were to do next.
      async unsafeHandleRuntimeRestart() {
        console.error("The runtime ended unexpectedly and was started again.");
        await runCron();
      },
    }),
  );
  const url = await miniflare.ready;

  /**
   * By a request rather than by Miniflare's stub of the Worker. A stub blocks this process until the runtime has answered, and
   * a runtime with much to say waits until this process has read what it printed: then both wait for ever. It would also have
   * ended with its runtime.
   */
  async function runCron() {
    try {
      const response = await miniflare.dispatchFetch("http://localhost/cdn-cgi/local/scheduled?cron=*+*+*+*+*");
      const outcome = await response.text();
      if (!response.ok) throw new Error(outcome);
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

/**
 * Brings the databases up to date, before anything else is at work on them and before anybody is answered. In a runtime that
 * says nothing, since the stubs of databases block: see `runCron`.
 */
async function migrate(options: {
  compatibilityDate: string | undefined;
  d1Databases: Record<string, { id: string }>;
  resourcePersistencePath: string;
}): Promise<void> {
  const folder = join(root, "migrations");
  const databases = Object.keys(options.d1Databases);
  const mark = createMigrationMark(options.resourcePersistencePath, databases, folder);
  if (mark.isSet()) return;
  const { convertV4MiniflareOptions, Miniflare } = loadMiniflare();
  const miniflare = new Miniflare(
    convertV4MiniflareOptions({ ...options, name: "migrate", modules: true, script: "export default {}", port: 0 }),
  );
  try {
    for (const name of databases) await applyMigrations(await miniflare.getD1Database(name), folder);
  } finally {
    await miniflare.dispose();
  }
  mark.set();
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
