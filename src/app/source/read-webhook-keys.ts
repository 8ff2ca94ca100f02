import { isId } from "../../core/ids.ts";
import type { PublicDeliveryKeys } from "../../core/model.ts";
import { PUBLISHED_AFTER_MS } from "../../core/source-keys.ts";
import { AppError } from "../app-error.ts";
import { findSourcePlace, type FindSourcePlaceDeps } from "../publish/find-source-place.ts";
import type { Runtime } from "../runtime.ts";

export interface ReadWebhookKeysDeps extends FindSourcePlaceDeps, Pick<Runtime, "now"> {
  publicKeys(shard: string): {
    /** Null when the source has none, or its tenant is gone. */
    findPublicKeys(tenantId: string, sourceId: string): Promise<PublicDeliveryKeys | null>;
  };
}

export interface WebhookKey {
  publicKey: Uint8Array;
  version: number;
  /** Null while no rotation has set its end. */
  signsUntil: number | null;
}

/**
 * The keys by which what a source sends is verified, newest first: for anybody, by the source's id. One refusal for all there is to
 * refuse. A deleted source goes on being answered, as its deliveries go on.
 */
export async function readWebhookKeys(deps: ReadWebhookKeysDeps, sourceId: string): Promise<WebhookKey[]> {
  const place = isId("src", sourceId) ? await findSourcePlace(deps, sourceId) : null;
  const keys = place && (await deps.publicKeys(place.shard).findPublicKeys(place.tenantId, sourceId));
  if (!keys) throw new AppError("not_found", "There are no keys of such a source.");
  const { version, current, previous, previousValidUntil } = keys;
  const isPublished = previous && previousValidUntil !== null && deps.now() < previousValidUntil + PUBLISHED_AFTER_MS;
  return [
    { publicKey: current, version, signsUntil: null },
    ...(isPublished ? [{ publicKey: previous, version: version - 1, signsUntil: previousValidUntil }] : []),
  ];
}
