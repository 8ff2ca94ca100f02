import { compilePattern, isOperational } from "../../core/event-type.ts";
import { createFilterCache, type FilterCache } from "../../core/filter/filter-cache.ts";
import { createMatcher, type Matcher, type MatchableSubscription } from "../../core/match.ts";
import { collectTypes, type RegisteredTypes, type RegisteredVersion } from "../../core/registered-types.ts";
import { RELAY_SOURCE_NAME, relaySourceId } from "../../core/relay-source.ts";
import { AppError } from "../app-error.ts";
import { unauthorized } from "../authenticate.ts";
import { toHex } from "../../core/hex.ts";
import type { SourceKeys } from "../../core/model.ts";
import type { Plan } from "../../core/publish-limits.ts";
import { MAX_FILTER_CHARACTERS } from "../../core/quotas.ts";
import {
  invalidSignature,
  isSignedBySource,
  refuseUnknownSigner,
  type SignedRequest,
  type VerifySignedDeps,
} from "./verify-signed.ts";

/**
 * How a publisher is known: by the hash of its key, by the tenant an operator acts for, as a source by its signature, or as the
 * relay, which tells a tenant of its operational events.
 */
export type PublisherRef = { keyHash: Uint8Array } | { tenantId: string } | SignerRef | RelayRef;

/** No request is one: only the relay's own code makes it. */
interface RelayRef {
  tenantId: string;
  isRelay: true;
}

/** A source that signs, and the request that proves it: each configuration the request is tried under verifies it anew. */
export interface SignerRef {
  tenantId: string;
  sourceId: string;
  signed: SignedRequest;
}

export interface PublishSource {
  id: string;
  name: string;
  /** Wrapped, as they are in the ledger. */
  keys: SourceKeys;
  allows(eventType: string): boolean;
}

/** A tenant's configuration as of one revision, compiled. A publish commits only under that revision. */
export interface PublishConfig {
  tenantId: string;
  plan: Plan;
  isSuspended: boolean;
  revision: number;
  sources: PublishSource[];
  types: RegisteredTypes;
  requiresRegistration: boolean;
  match: Matcher;
  /** Of all its filters: what it is worth to be forgotten. */
  filterCharacters: number;
}

/** Who publishes: the configuration, and the one source a publish key, or a signature, may publish for. */
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
  sources: { id: string; name: string; allowedEventTypes: string[]; keys: SourceKeys }[];
  subscriptions: MatchableSubscription[];
  eventTypes: RegisteredVersion[];
  requiresRegistration: boolean;
}

export interface PublishConfigDeps extends VerifySignedDeps {
  loadPublishConfig(publisher: PublisherRef): Promise<ConfigRows | null>;
  /** Null when there is no such tenant any more. */
  findTenantRevision(tenantId: string): Promise<number | null>;
  publishConfigs: PublishConfigCache;
}

/**
 * What an isolate remembers between publishes. It decides nothing: every commit proves the revision, so a stale entry
 * costs one more trip and a key revoked meanwhile is refused.
 */
export interface PublishConfigCache {
  configs: Map<string, PublishConfig>;
  keys: Map<string, { tenantId: string; revision: number; key: ConfigRows["key"] }>;
  /** Compiled filters of all tenants. */
  filters: FilterCache;
  /** When each key was last refused for its rate with its configuration read afresh. */
  refusedAt: Map<string, number>;
}

const MAX_CACHED_TENANTS = 200;
const MAX_CACHED_KEYS = 2_000;
/** Two tenants that have all they may have, or thousands. */
const MAX_CACHED_FILTER_CHARACTERS = 2 * MAX_FILTER_CHARACTERS;

export function createPublishConfigCache(): PublishConfigCache {
  return { configs: new Map(), keys: new Map(), filters: createFilterCache(), refusedAt: new Map() };
}

/**
 * The publisher behind a key or a signature, remembered or loaded (one trip). Throws `unauthorized`, `tenant_suspended`,
 * `forbidden` for a read key, `invalid_signature` for a signature that no live key of its source made.
 */
export async function authorizePublisher(deps: PublishConfigDeps, ref: PublisherRef): Promise<Publisher> {
  const known = deps.publishConfigs.keys.get(publisherKey(ref));
  const config = known && deps.publishConfigs.configs.get(known.tenantId);
  if (!known || !config || config.revision !== known.revision) return reloadPublisher(deps, ref);
  try {
    return await toPublisher(deps, ref, config, known.key);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    // What is refused is proved by no commit, and there may be a new key since, or no suspension any more. Anybody can send a
    // bad signature, so the revision is asked for at the price of one row.
    if (await isPresent(deps, { config })) throw error;
    return reloadPublisher(deps, ref);
  }
}

/** Whether what a publisher was checked against is as the ledger has it now. */
export async function isPresent(deps: PublishConfigDeps, { config }: Pick<Publisher, "config">): Promise<boolean> {
  return (await deps.findTenantRevision(config.tenantId)) === config.revision;
}

/** Loads afresh: for the first publish of an isolate, and for one whose commit found the configuration changed. */
export async function reloadPublisher(deps: PublishConfigDeps, ref: PublisherRef): Promise<Publisher> {
  const { configs, keys } = deps.publishConfigs;
  const rows = await deps.loadPublishConfig(ref);
  if (!rows) {
    keys.delete(publisherKey(ref));
    if ("signed" in ref) return refuseUnknownSigner(ref.signed);
    throw unauthorized();
  }
  const config = compileConfig(rows, deps.publishConfigs.filters);
  const { tenantId, revision, key } = rows;
  rememberConfig(configs, config);
  remember(keys, publisherKey(ref), { tenantId, revision, key }, MAX_CACHED_KEYS);
  return toPublisher(deps, ref, config, key);
}

async function toPublisher(
  deps: VerifySignedDeps,
  ref: PublisherRef,
  config: PublishConfig,
  key: ConfigRows["key"],
): Promise<Publisher> {
  const source = "signed" in ref ? await findSigner(deps, ref, config) : null;
  if (key?.scope === "read") throw new AppError("forbidden", "A key of scope read cannot publish.");
  // Last: whose tenant is suspended is nobody else's business.
  if (config.isSuspended) throw new AppError("tenant_suspended", "The tenant is suspended: it cannot publish.");
  if ("isRelay" in ref) {
    const relay = relaySource(config.tenantId);
    return { ref, config: { ...config, sources: [relay] }, sourceId: relay.id };
  }
  return { ref, config, sourceId: source?.id ?? key?.sourceId ?? null };
}

/** What the relay publishes as. Nobody else publishes for it: it is in no configuration that is loaded. */
function relaySource(tenantId: string): PublishSource {
  const keys = { version: 0, current: null, previous: null, previousValidUntil: null };
  return { id: relaySourceId(tenantId), name: RELAY_SOURCE_NAME, keys, allows: isOperational };
}

async function findSigner(deps: VerifySignedDeps, ref: SignerRef, config: PublishConfig): Promise<PublishSource> {
  const source = config.sources.find(({ id }) => id === ref.sourceId);
  if (!source) return refuseUnknownSigner(ref.signed);
  const signer = { tenantId: config.tenantId, sourceId: source.id, keys: source.keys };
  if (!(await isSignedBySource(deps, signer, ref.signed))) throw invalidSignature();
  return source;
}

function compileConfig(rows: ConfigRows, filters: FilterCache): PublishConfig {
  const types = collectTypes(rows.eventTypes);
  return {
    tenantId: rows.tenantId,
    plan: rows.plan,
    isSuspended: rows.isSuspended,
    revision: rows.revision,
    filterCharacters: rows.subscriptions.reduce((sum, { filter }) => sum + (filter?.length ?? 0), 0),
    types,
    requiresRegistration: rows.requiresRegistration,
    match: createMatcher(rows.subscriptions, types, filters),
    sources: rows.sources.map(({ id, name, allowedEventTypes, keys }) => {
      const patterns = allowedEventTypes.map(compilePattern);
      return { id, name, keys, allows: (eventType) => patterns.some((matches) => matches(eventType)) };
    }),
  };
}

/** By their number and by their filters, the oldest goes first; what has just been loaded stays. */
function rememberConfig(configs: PublishConfigCache["configs"], config: PublishConfig): void {
  remember(configs, config.tenantId, config, MAX_CACHED_TENANTS);
  let characters = [...configs.values()].reduce((sum, { filterCharacters }) => sum + filterCharacters, 0);
  for (const [tenantId, { filterCharacters }] of configs) {
    if (characters <= MAX_CACHED_FILTER_CHARACTERS || tenantId === config.tenantId) break;
    configs.delete(tenantId);
    characters -= filterCharacters;
  }
}

/** What a publisher's configuration is remembered by: the hash of its key, else its tenant. */
export function publisherKey(ref: PublisherRef): string {
  return "keyHash" in ref ? toHex(ref.keyHash) : ref.tenantId;
}

/** A Map iterates in order of insertion, so its first key is the one that was loaded longest ago. */
export function remember<T>(cache: Map<string, T>, key: string, value: T, limit: number): void {
  cache.delete(key);
  if (cache.size >= limit) cache.delete(cache.keys().next().value!);
  cache.set(key, value);
}
