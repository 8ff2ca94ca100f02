import type { SourceKeys } from "../../core/model.ts";
import { unwrapSecret, type SecretsKeys } from "../../core/secret-box.ts";
import { isSignedWith, type SignedMessage } from "../../core/signature.ts";
import { liveSourceKeys, sourceKeyContext } from "../../core/source-keys.ts";
import { AppError } from "../app-error.ts";
import type { Runtime } from "../runtime.ts";

/** A publish request that came with a signature instead of a token. */
export interface SignedRequest {
  message: SignedMessage;
  /** At most four. */
  signatures: Uint8Array[];
}

export interface VerifySignedDeps extends Pick<Runtime, "now"> {
  secretsKeys: SecretsKeys;
}

/** A key that signs nothing, for sources that have none. */
const NO_KEY = new Uint8Array(32);

/**
 * Whether a live key of the source made one of the signatures. Keys are unwrapped here, for this one request: what an
 * isolate remembers of them is wrapped, as the ledger is. A source without a key is refused as one that is not
 * there. Throws when a key cannot be unwrapped and no other verifies.
 */
export async function isSignedBySource(
  deps: VerifySignedDeps,
  signer: { tenantId: string; sourceId: string; keys: SourceKeys },
  signed: SignedRequest,
): Promise<boolean> {
  const live = liveSourceKeys(signer.keys, deps.now());
  if (live.length === 0) return refuseUnknownSigner(signed);
  let fault: Error | null = null;
  for (const { version, wrappedKey } of live) {
    const context = sourceKeyContext(signer.tenantId, signer.sourceId, version);
    const key = await unwrapSecret(deps.secretsKeys, wrappedKey, context);
    if (!key.ok) fault = new Error(`signing key ${version} of ${signer.sourceId}: ${key.error}`);
    else if (await isSignedWith(key.value, signed.message, signed.signatures)) return true;
  }
  // Ours, not the producer's: it may be the key that cannot be read that would have verified.
  if (fault) throw fault;
  return false;
}

/** Does the work of a wrong signature first: how long a refusal takes must not tell which sources exist. */
export async function refuseUnknownSigner({ message, signatures }: SignedRequest): Promise<never> {
  await isSignedWith(NO_KEY, message, signatures);
  throw invalidSignature();
}

/** The detail speaks of the request alone, never of what is or is not in the ledger. */
export function invalidSignature(
  detail = "No live key of the source X-Webhook-Source names made this signature over exactly these bytes.",
): AppError {
  return new AppError("invalid_signature", detail);
}
