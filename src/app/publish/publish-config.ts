import { compilePattern } from "../../core/event-type.ts";
import { createMatcher, type Matcher, type MatchableSubscription } from "../../core/match.ts";
import { AppError } from "../app-error.ts";
import { unauthorized } from "../authenticate.ts";
import { toHex } from "../../core/hex.ts";
import type { Plan } from "../../core/publish-limits.ts";

/** How a publisher is known: by the hash of its key, or by the tenant an operator acts for. */
export type PublisherRef = { keyHash: Uint8Array } | { tenantId: string };

export interface PublishSource {
  id: string;
  name: string;
  allows(eventType: string): boolean;
}

/** A tenant's configuration as of one revision, compiled. A publish commits only under that revision. */
export interface PublishConfig {
  tenantId: string;
  plan: Plan;
  revision: number;
  sources: PublishSource[];
  match: Matcher;
}

/** Who publishes: the configuration, and the one source a publish key may publish for. */
export interface Publisher {
  ref: PublisherRef;
  config: PublishConfig;
  sourceId: string | null;
}

interface ConfigRows {
  tenantId: string;
  plan: Plan;
  revision: number;
  isSuspended: boolean;
  key: { scope: "admin" | "read" | "publish"; sourceId: string | null } | null;
  sources: { id: string; name: string; allowedEventTypes: string[] }[];
  subscriptions: MatchableSubscription[];
}

export interface PublishConfigDeps {
  loadPublishConfig(publisher: PublisherRef): Promise<ConfigRows | null>;
  publishConfigs: PublishConfigCache;
}

/**
 * What an isolate remembers between publishes. It decides nothing: every commit proves the revision, so a stale entry
 * costs one more trip and a key revoked meanwhile is refused.
 */
export interface PublishConfigCache {
  configs: Map<string, PublishConfig>;
  keys: Map<string, { tenantId: string; revision: number; key: ConfigRows["key"] }>;
  /** When each key was last refused for its rate with its configuration read afresh. */
  refusedAt: Map<string, number>;
}

const MAX_CACHED_TENANTS = 200;
const MAX_CACHED_KEYS = 2_000;

export function createPublishConfigCache(): PublishConfigCache {
  return { configs: new Map(), keys: new Map(), refusedAt: new Map() };
}

/**
 * The publisher behind a key, remembered or loaded (one trip). Throws `unauthorized`, `tenant_suspended`, or `forbidden` for
 * a read key.
 */
export async function authorizePublisher(deps: PublishConfigDeps, ref: PublisherRef): Promise<Publisher> {
  const known = deps.publishConfigs.keys.get(publisherKey(ref));
  const config = known && deps.publishConfigs.configs.get(known.tenantId);
  if (known && config && config.revision === known.revision) return toPublisher(ref, config, known.key);
  return reloadPublisher(deps, ref);
}

/** Loads afresh: for the first publish of an isolate, and for one whose commit found the configuration changed. */
export async function reloadPublisher(deps: PublishConfigDeps, ref: PublisherRef): Promise<Publisher> {
  const { configs, keys } = deps.publishConfigs;
  const rows = await deps.loadPublishConfig(ref);
  if (!rows) {
    keys.delete(publisherKey(ref));
    throw unauthorized();
  }
  if (rows.isSuspended) {
    // Forgotten, so that the next one is refused before its payload is stored.
    keys.delete(publisherKey(ref));
    throw new AppError("tenant_suspended", "The tenant is suspended: it cannot publish.");
  }
  const config = compileConfig(rows);
  // Before it is remembered: what is refused is read afresh each time.
  const publisher = toPublisher(ref, config, rows.key);
  remember(configs, rows.tenantId, config, MAX_CACHED_TENANTS);
  remember(
    keys,
    publisherKey(ref),
    { tenantId: rows.tenantId, revision: rows.revision, key: rows.key },
    MAX_CACHED_KEYS,
  );
  return publisher;
}

function toPublisher(ref: PublisherRef, config: PublishConfig, key: ConfigRows["key"]): Publisher {
  if (key?.scope === "read") throw new AppError("forbidden", "A key of scope read cannot publish.");
  return { ref, config, sourceId: key?.sourceId ?? null };
}

function compileConfig(rows: ConfigRows): PublishConfig {
  return {
    tenantId: rows.tenantId,
    plan: rows.plan,
    revision: rows.revision,
    match: createMatcher(rows.subscriptions),
    sources: rows.sources.map(({ id, name, allowedEventTypes }) => {
      const patterns = allowedEventTypes.map(compilePattern);
      return { id, name, allows: (eventType) => patterns.some((matches) => matches(eventType)) };
    }),
  };
}

/** One text for each publisher: the hash of its key, or the tenant that an operator acts for. */
export function publisherKey(ref: PublisherRef): string {
  return "keyHash" in ref ? toHex(ref.keyHash) : ref.tenantId;
}

/** A Map iterates in order of insertion, so its first key is the one that was loaded longest ago. */
export function remember<T>(cache: Map<string, T>, key: string, value: T, limit: number): void {
  cache.delete(key);
  if (cache.size >= limit) cache.delete(cache.keys().next().value!);
  cache.set(key, value);
}
