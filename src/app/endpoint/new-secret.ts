import { createId } from "../../core/ids.ts";
import type { SigningSecret } from "../../core/model.ts";
import { IV_BYTES, wrapSecret } from "../../core/secret-box.ts";
import { encodeSigningSecret } from "../../core/signature.ts";
import { secretContext } from "../../core/signing-secrets.ts";
import type { SecretDeps } from "./deps.ts";

const SECRET_BYTES = 32;

/** A fresh secret, live from `now`: `secret` as it is stored, `text` (`whsec_…`) as its owner gets to see it. */
export async function createSecret(
  deps: Pick<SecretDeps, "secretsKeys" | "randomBytes">,
  place: { tenantId: string; endpointId: string; slot: 0 | 1 },
  now: number,
): Promise<{ secret: SigningSecret; text: string }> {
  const id = createId("sec", deps.randomBytes(10));
  const key = new Uint8Array(deps.randomBytes(SECRET_BYTES));
  const iv = new Uint8Array(deps.randomBytes(IV_BYTES));
  const wrappedKey = await wrapSecret(deps.secretsKeys, key, iv, secretContext(place.tenantId, place.endpointId, id));
  return {
    secret: { id, slot: place.slot, wrappedKey, activeFrom: now, activeUntil: null },
    text: encodeSigningSecret(key),
  };
}
