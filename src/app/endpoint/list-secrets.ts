import { z } from "zod";
import type { SigningSecret } from "../../core/model.ts";
import { unwrapSecret } from "../../core/secret-box.ts";
import { encodeSigningSecret } from "../../core/signature.ts";
import { liveSecrets, secretContext } from "../../core/signing-secrets.ts";
import { notFound } from "../app-error.ts";
import { parseInput } from "../parse-input.ts";
import { requireAdmin, requireReader, type Principal } from "../principal.ts";
import type { SecretDeps } from "./deps.ts";

export const ListSecretsInput = z.strictObject({ reveal: z.enum(["true", "false"]).default("false") });
export type ListSecretsInput = z.infer<typeof ListSecretsInput>;

/** `text` (`whsec_…`) is null unless an admin key asked to reveal it. */
export interface ListedSecret {
  secret: SigningSecret;
  text: string | null;
}

/** The live secrets of an endpoint, newest first. */
export async function listSecrets(
  deps: Omit<SecretDeps, "randomBytes">,
  principal: Principal,
  endpointId: string,
  query: unknown,
): Promise<ListedSecret[]> {
  requireReader(principal);
  const isRevealed = parseInput(ListSecretsInput, query).reveal === "true";
  if (isRevealed) requireAdmin(principal);
  const found = await deps.signingSecrets.find(principal.tenantId, endpointId);
  if (!found) throw notFound("endpoint");

  const reveal = async (secret: SigningSecret): Promise<string> => {
    const context = secretContext(principal.tenantId, endpointId, secret.id);
    const key = await unwrapSecret(deps.secretsKeys, secret.wrappedKey, context);
    if (!key.ok) throw new Error(`Signing secret ${secret.id} cannot be unwrapped: ${key.error}.`);
    return encodeSigningSecret(key.value);
  };
  return Promise.all(
    liveSecrets(found.secrets, deps.now()).map(async (secret) => ({
      secret,
      text: isRevealed ? await reveal(secret) : null,
    })),
  );
}
