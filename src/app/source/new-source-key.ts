import { IV_BYTES, wrapSecret } from "../../core/secret-box.ts";
import { encodeSigningSecret } from "../../core/signature.ts";
import { publicKeyOf, SEED_BYTES } from "../../core/source-signature.ts";
import { deliveryKeyContext, sourceKeyContext } from "../../core/source-keys.ts";
import type { StoredDeliveryKey } from "../../core/model.ts";
import type { SourceDeps } from "./deps.ts";

const KEY_BYTES = 32;

/** A fresh signing key: `wrappedKey` as it is stored, `text` (`whsec_…`) as the producer gets to see it, once. */
export async function createSourceKey(
  deps: Pick<SourceDeps, "secretsKeys" | "randomBytes">,
  place: { tenantId: string; sourceId: string; version: number },
): Promise<{ wrappedKey: Uint8Array; text: string }> {
  const key = new Uint8Array(deps.randomBytes(KEY_BYTES));
  const iv = new Uint8Array(deps.randomBytes(IV_BYTES));
  const context = sourceKeyContext(place.tenantId, place.sourceId, place.version);
  return { wrappedKey: await wrapSecret(deps.secretsKeys, key, iv, context), text: encodeSigningSecret(key) };
}

/** A fresh delivery key, whose private half nobody is ever shown. */
export async function createDeliveryKey(
  deps: Pick<SourceDeps, "secretsKeys" | "randomBytes">,
  { tenantId, sourceId, version }: { tenantId: string; sourceId: string; version: number },
): Promise<StoredDeliveryKey> {
  const seed = new Uint8Array(deps.randomBytes(SEED_BYTES));
  const iv = new Uint8Array(deps.randomBytes(IV_BYTES));
  const context = deliveryKeyContext(tenantId, sourceId, version);
  const [wrappedKey, publicKey] = await Promise.all([
    wrapSecret(deps.secretsKeys, seed, iv, context),
    publicKeyOf(seed),
  ]);
  return { version, wrappedKey, publicKey };
}
