import { z } from "zod";
import type { Source } from "../../core/model.ts";
import { planKeyRotation } from "../../core/source-keys.ts";
import { AppError, notFound } from "../app-error.ts";
import { parseInput } from "../parse-input.ts";
import { requireAdmin, type Principal } from "../principal.ts";
import { untilFresh } from "../until-fresh.ts";
import type { SourceDeps } from "./deps.ts";
import { createSourceKey } from "./new-source-key.ts";

const HOUR_MS = 3_600_000;

export const RotateSourceKeyInput = z.strictObject({
  kind: z
    .enum(["signing_key", "delivery_key"])
    .default("signing_key")
    .superRefine((kind, context) => {
      if (kind === "signing_key") return;
      context.addIssue({ code: "custom", message: "is not supported yet", params: { notSupported: true } });
    }),
  overlap_hours: z.number().min(24).max(72).default(24),
  force: z.boolean().default(false),
});
export type RotateSourceKeyInput = z.infer<typeof RotateSourceKeyInput>;

/**
 * A new key for what the source publishes; the present one verifies beside it for the overlap. 409 while two are live,
 * unless forced. A source from before there were keys gets its first. Of two rotations at once one writes first; the other
 * then sees two live keys.
 */
export async function rotateSourceKey(
  deps: SourceDeps,
  principal: Principal,
  id: string,
  body: unknown,
): Promise<{ source: Source; signingKey: string }> {
  requireAdmin(principal);
  const input = parseInput(RotateSourceKeyInput, body);
  const { tenantId } = principal;
  return untilFresh(async () => {
    const keys = await deps.sources.findKeys(tenantId, id);
    if (!keys) throw notFound("source");
    const now = deps.now();
    const plan = planKeyRotation(keys, now, input.force);
    if (!plan.ok) throw new AppError(plan.error, "Two keys are live. Wait for the overlap to end, or use force.");

    const { version } = plan.value;
    const { wrappedKey, text } = await createSourceKey(deps, { tenantId, sourceId: id, version });
    // Before the key, so that no key is shown that leads nowhere.
    await deps.sourceDirectory.add({ sourceId: id, tenantId });
    const previousValidUntil = now + Math.round(input.overlap_hours * HOUR_MS);
    const source = await deps.sources.rotateKey(tenantId, id, { version, wrappedKey, previousValidUntil });
    return source && { source, signingKey: text };
  });
}
