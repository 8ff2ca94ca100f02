import { z } from "zod";
import type { Source } from "../../core/model.ts";
import { planKeyRotation } from "../../core/source-keys.ts";
import { AppError, notFound } from "../app-error.ts";
import { parseInput } from "../parse-input.ts";
import { requireAdmin, type Principal } from "../principal.ts";
import { untilFresh } from "../until-fresh.ts";
import type { SourceDeps } from "./deps.ts";
import { createDeliveryKey, createSourceKey } from "./new-source-key.ts";

const HOUR_MS = 3_600_000;

export const RotateSourceKeyInput = z.strictObject({
  kind: z.enum(["signing_key", "delivery_key"]).default("signing_key"),
  overlap_hours: z.number().min(24).max(72).default(24),
  force: z.boolean().default(false),
});
export type RotateSourceKeyInput = z.infer<typeof RotateSourceKeyInput>;

/**
 * A new key for what the source publishes, or for what is sent of it; the present one is good beside it for the overlap. 409 while
 * two are live, unless forced. A source from before there were keys gets its first. Of two rotations at once one writes first; the
 * other then sees two live keys. `signingKey` is null of a delivery key: its private half is nobody's, and its public half is
 * found by anybody.
 */
export async function rotateSourceKey(
  deps: SourceDeps,
  principal: Principal,
  id: string,
  body: unknown,
): Promise<{ source: Source; signingKey: string | null }> {
  requireAdmin(principal);
  const { kind, overlap_hours: overlapHours, force } = parseInput(RotateSourceKeyInput, body);
  const { tenantId } = principal;
  return untilFresh(async () => {
    const isDelivery = kind === "delivery_key";
    const keys = await (isDelivery ? deps.sources.findDeliveryKeys : deps.sources.findKeys)(tenantId, id);
    if (!keys) throw notFound("source");
    const now = deps.now();
    const plan = planKeyRotation(keys, now, force);
    if (!plan.ok) throw new AppError(plan.error, "Two keys are live. Wait for the overlap to end, or use force.");

    const place = { tenantId, sourceId: id, version: plan.value.version };
    const previousValidUntil = now + Math.round(overlapHours * HOUR_MS);
    // Before the key, so that none is shown, and nothing signed by one, that leads nowhere.
    await deps.sourceDirectory.add({ sourceId: id, tenantId });
    if (isDelivery) {
      const key = { ...(await createDeliveryKey(deps, place)), previousValidUntil };
      const source = await deps.sources.rotateDeliveryKey(tenantId, id, key);
      return source && { source, signingKey: null };
    }
    const { wrappedKey, text } = await createSourceKey(deps, place);
    const key = { version: place.version, wrappedKey, previousValidUntil };
    const source = await deps.sources.rotateKey(tenantId, id, key);
    return source && { source, signingKey: text };
  });
}
