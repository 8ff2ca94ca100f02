import { boundedDatabase } from "./bounded.ts";

/** The shard whose database also holds the directory of tenants. */
export const CENTRAL_SHARD = "0";

/** Shard names → databases: `DB` is "0", `DB_1` is "1", and so on. */
export function shardsOf(env: Env): Map<string, D1Database> {
  const shards = new Map<string, D1Database>();
  for (const [name, binding] of Object.entries(env)) {
    const match = /^DB(?:_(\d+))?$/.exec(name);
    if (match) shards.set(match[1] ?? CENTRAL_SHARD, binding as D1Database);
  }
  return shards;
}

/** Each of its trips ends in time. */
export function database(env: Env, shard: string): D1Database {
  const db = shardsOf(env).get(shard);
  if (!db) throw new Error(`There is no database for shard ${shard}: wrangler.toml has no binding DB_${shard}.`);
  return boundedDatabase(db);
}
