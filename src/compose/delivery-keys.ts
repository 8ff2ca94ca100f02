import { makeDeliveryKey } from "../app/source/make-delivery-key.ts";
import { parseSettings } from "../env.ts";
import { createDeliveryKeyStore } from "../storage/config/delivery-keys.ts";
import { createSourceDirectory } from "../storage/config/source-directory.ts";
import { runtime } from "./runtime.ts";
import { CENTRAL_SHARD, database } from "./shards.ts";

/** Makes the first delivery key of a source, while something of it is to be signed. */
export function deliveryKeyMaker(env: Env, shard: string) {
  const deps = {
    ...runtime,
    secretsKeys: parseSettings(env).SECRETS_KEY,
    sourceDirectory: createSourceDirectory(database(env, CENTRAL_SHARD)),
    deliveryKeys: createDeliveryKeyStore(database(env, shard)),
  };
  return (tenantId: string, sourceId: string) => makeDeliveryKey(deps, tenantId, sourceId);
}
