import type { SourceKeys, StoredDeliveryKey } from "../../core/model.ts";
import type { SourceDeps } from "./deps.ts";
import { createDeliveryKey } from "./new-source-key.ts";

export interface MakeDeliveryKeyDeps extends Pick<
  SourceDeps,
  "now" | "randomBytes" | "secretsKeys" | "sourceDirectory"
> {
  deliveryKeys: {
    /** Stores the key unless there is one, and gives back what there is then. */
    storeFirst(tenantId: string, sourceId: string, key: StoredDeliveryKey, now: number): Promise<SourceKeys>;
  };
}

/**
 * The first delivery key of a source from before there were any, or of the relay's own, when a request is to be signed by it. Of
 * many at once one is kept, and all sign with that.
 */
export async function makeDeliveryKey(
  deps: MakeDeliveryKeyDeps,
  tenantId: string,
  sourceId: string,
): Promise<SourceKeys> {
  const key = await createDeliveryKey(deps, { tenantId, sourceId, version: 1 });
  // Before the key, so that nothing is signed by one whose public half cannot be found.
  await deps.sourceDirectory.add({ sourceId, tenantId });
  return deps.deliveryKeys.storeFirst(tenantId, sourceId, key, deps.now());
}
