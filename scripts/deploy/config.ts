import { mkdirSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { loadWrangler } from "../load-tools.ts";
import { root } from "./wrangler.ts";

/** The parts of `wrangler.toml` that a deployment is about. */
export interface RawConfig {
  name: string;
  main: string;
  d1_databases?: { binding: string; database_name?: string; database_id?: string; migrations_dir?: string }[];
  r2_buckets?: { binding: string; bucket_name?: string }[];
  queues?: {
    producers?: { binding: string; queue: string }[];
    consumers?: { queue: string; dead_letter_queue?: string }[];
  };
  vars?: Record<string, string>;
  secrets?: { required?: string[] };
  routes?: unknown[];
  route?: unknown;
  env?: Record<string, Partial<RawConfig>>;
}

/** One relay in one account: what it is called, and what it needs. */
export interface Deployment {
  name: string;
  databases: { binding: string; name: string }[];
  bucket: string;
  /** Those that `wrangler deploy` does not make by itself. */
  consumedQueues: string[];
  requiredSecrets: string[];
  vars: Record<string, string>;
  hasRoute: boolean;
}

export function readWranglerToml(): RawConfig {
  const { rawConfig } = loadWrangler().experimental_readRawConfig({ config: join(root, "wrangler.toml") });
  return rawConfig as unknown as RawConfig;
}

/**
 * The configuration of an environment. Wrangler's own environments inherit no bindings, so this makes a whole one: every
 * resource under a name of its own, and over that whatever `[env.<name>]` says. What only one relay can have stays behind: ids
 * of resources, routes, and where it answers.
 */
export function forEnvironment({ env, ...base }: RawConfig, environment: string): RawConfig {
  const own = (name: string) => `${name}-${environment}`;
  const { routes: _routes, route: _route, ...shared } = base;
  const { OWN_HOSTS: _hosts, ...vars } = base.vars ?? {};
  const { vars: ownVars, ...overrides } = env?.[environment] ?? {};
  return {
    ...shared,
    name: own(base.name),
    d1_databases: base.d1_databases?.map(({ database_id: _id, ...database }) => ({
      ...database,
      database_name: own(database.database_name ?? `${base.name}-${database.binding.toLowerCase()}`),
    })),
    r2_buckets: base.r2_buckets?.map((bucket) => ({
      ...bucket,
      bucket_name: own(bucket.bucket_name ?? `${base.name}-${bucket.binding.toLowerCase()}`),
    })),
    queues: {
      producers: base.queues?.producers?.map((producer) => ({ ...producer, queue: own(producer.queue) })),
      consumers: base.queues?.consumers?.map((consumer) => ({
        ...consumer,
        queue: own(consumer.queue),
        ...(consumer.dead_letter_queue !== undefined && { dead_letter_queue: own(consumer.dead_letter_queue) }),
      })),
    },
    ...overrides,
    vars: { ...vars, ...ownVars },
  } as RawConfig;
}

/** Writes an environment's configuration where wrangler can read it; paths in it go by where it stands. */
export function writeEnvironment(config: RawConfig, environment: string): string {
  const folder = join(root, ".wrangler/environments");
  const path = join(folder, `${environment}.json`);
  const seenFrom = (file: string) => relative(folder, join(root, file));
  mkdirSync(folder, { recursive: true });
  const moved = {
    ...config,
    main: seenFrom(config.main),
    d1_databases: config.d1_databases?.map((database) => ({
      ...database,
      ...(database.migrations_dir !== undefined && { migrations_dir: seenFrom(database.migrations_dir) }),
    })),
  };
  writeFileSync(path, `${JSON.stringify(moved, null, 2)}\n`);
  return path;
}

/** Throws where something has no name: what is made twice must be found again. */
export function describeDeployment(config: RawConfig): Deployment {
  const [bucket] = config.r2_buckets ?? [];
  if (bucket?.bucket_name === undefined) throw new Error("wrangler.toml gives the bucket PAYLOADS no bucket_name.");
  const produced = new Set(config.queues?.producers?.map(({ queue }) => queue));
  const consumed = (config.queues?.consumers ?? []).flatMap(({ queue, dead_letter_queue: dead }) => [
    queue,
    ...(dead === undefined ? [] : [dead]),
  ]);
  return {
    name: config.name,
    databases: (config.d1_databases ?? []).map(({ binding, database_name: name }) => {
      if (name === undefined) throw new Error(`wrangler.toml gives the database ${binding} no database_name.`);
      return { binding, name };
    }),
    bucket: bucket.bucket_name,
    consumedQueues: [...new Set(consumed)].filter((queue) => !produced.has(queue)),
    requiredSecrets: config.secrets?.required ?? [],
    vars: config.vars ?? {},
    hasRoute: config.route !== undefined || (config.routes?.length ?? 0) > 0,
  };
}
