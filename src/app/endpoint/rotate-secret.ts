import { z } from "zod";
import type { SigningSecret } from "../../core/model.ts";
import { planRotation } from "../../core/signing-secrets.ts";
import { AppError, notFound } from "../app-error.ts";
import { parseInput } from "../parse-input.ts";
import { requireAdmin, type Principal } from "../principal.ts";
import { untilFresh } from "../until-fresh.ts";
import type { SecretDeps } from "./deps.ts";
import { createSecret } from "./new-secret.ts";

const HOUR_MS = 3_600_000;

export const RotateSecretInput = z.strictObject({
  overlap_hours: z.number().min(24).max(72).default(24),
  force: z.boolean().default(false),
});
export type RotateSecretInput = z.infer<typeof RotateSecretInput>;

export interface RotatedSecret {
  secret: SigningSecret;
  /** `whsec_…`, to be shown this once. */
  text: string;
  /** The secret it takes over from, which goes on signing until then. */
  previous: { id: string; activeUntil: number } | null;
}

/**
 * The new secret signs from now on, the present one beside it for the overlap. 409 while two are live, unless forced. Of
 * two rotations at once one writes first; the other then sees two live secrets.
 */
export async function rotateSecret(
  deps: SecretDeps,
  principal: Principal,
  endpointId: string,
  body: unknown,
): Promise<RotatedSecret> {
  requireAdmin(principal);
  const input = parseInput(RotateSecretInput, body);
  const { tenantId } = principal;
  return untilFresh(async () => {
    const found = await deps.signingSecrets.find(tenantId, endpointId);
    if (!found) throw notFound("endpoint");
    const now = deps.now();
    const plan = planRotation(found.secrets, now, input.force);
    if (!plan.ok) throw new AppError(plan.error, "Two secrets are live. Wait for the overlap to end, or use force.");

    const { slot, current } = plan.value;
    const { secret, text } = await createSecret(deps, { tenantId, endpointId, slot }, now);
    const activeUntil = now + Math.round(input.overlap_hours * HOUR_MS);
    const previous = current ? { id: current.id, activeUntil } : null;
    const isStored = await deps.signingSecrets.rotate(tenantId, endpointId, found.endpointRevision, secret, previous);
    return isStored ? { secret, text, previous } : null;
  });
}
