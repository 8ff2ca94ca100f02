import type { SourceKeys } from "./model.ts";
import { ok, refuse, type Result } from "./result.ts";

/** What binds a wrapped signing key to its source and version (see `secret-box`). */
export function sourceKeyContext(tenantId: string, sourceId: string, version: number): string {
  return `${tenantId}/${sourceId}/signing_key/${version}`;
}

/** What binds a wrapped delivery key to its source and version. */
export function deliveryKeyContext(tenantId: string, sourceId: string, version: number): string {
  return `${tenantId}/${sourceId}/delivery_key/${version}`;
}

/**
 * How much longer a public key is answered than its private half signs: what was signed just before the end, by a clock that is
 * a little behind, is verified within the five minutes that a timestamp is good for.
 */
export const PUBLISHED_AFTER_MS = 600_000;

/** The keys that verify, or sign, at this moment, newest first: none, one, or two while a rotation's overlap runs. */
export function liveSourceKeys(keys: SourceKeys, nowMs: number): { version: number; wrappedKey: Uint8Array }[] {
  const { version, current, previous } = keys;
  return [
    ...(current ? [{ version, wrappedKey: current }] : []),
    ...(previous && isPreviousLive(keys, nowMs) ? [{ version: version - 1, wrappedKey: previous }] : []),
  ];
}

/**
 * The version of the next key. The present key becomes the previous one, so that a third live key is refused unless
 * `force` lets the oldest end at once. A source without a key gets its first.
 */
export function planKeyRotation(
  keys: SourceKeys,
  nowMs: number,
  force: boolean,
): Result<{ version: number }, "rotation_in_progress"> {
  if (liveSourceKeys(keys, nowMs).length === 2 && !force) return refuse("rotation_in_progress");
  return ok({ version: keys.version + 1 });
}

function isPreviousLive({ previousValidUntil }: SourceKeys, nowMs: number): boolean {
  return previousValidUntil !== null && previousValidUntil > nowMs;
}
