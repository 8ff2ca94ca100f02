import { remember } from "./publish-config.ts";

/** Where a source lives. It never moves. */
export interface SourcePlace {
  tenantId: string;
  shard: string;
}

export interface FindSourcePlaceDeps {
  sourceDirectory: { find(sourceId: string): Promise<SourcePlace | null> };
  /** What an isolate remembers of the directory. */
  sourcePlaces: Map<string, SourcePlace>;
}

const MAX_REMEMBERED_PLACES = 2_000;

/**
 * The tenant and shard of the source a signed request names, remembered or looked up (one trip). Null for a source that
 * never had a key. A deleted source still has its place; the shard knows that it is gone.
 */
export async function findSourcePlace(deps: FindSourcePlaceDeps, sourceId: string): Promise<SourcePlace | null> {
  const known = deps.sourcePlaces.get(sourceId);
  if (known) return known;
  const place = await deps.sourceDirectory.find(sourceId);
  if (place) remember(deps.sourcePlaces, sourceId, place, MAX_REMEMBERED_PLACES);
  return place;
}
