import { z } from "zod";
import { SOURCE_NAME } from "../../core/grammar.ts";
import { createId } from "../../core/ids.ts";
import type { Source } from "../../core/model.ts";
import { AppError, quotaExceeded } from "../app-error.ts";
import { PublishablePattern } from "../field-schemas.ts";
import { parseInput } from "../parse-input.ts";
import { requireAdmin, type Principal } from "../principal.ts";
import type { SourceDeps } from "./deps.ts";
import { createDeliveryKey, createSourceKey } from "./new-source-key.ts";

const MAX_PATTERNS = 100;

export const CreateSourceInput = z.strictObject({
  name: z
    .string()
    .regex(SOURCE_NAME, "must be 1 to 63 of a–z, 0–9, _ and -, beginning with a letter or digit, and not hooklane"),
  allowed_event_types: z.array(PublishablePattern).min(1).max(MAX_PATTERNS).default(["*"]),
});
export type CreateSourceInput = z.infer<typeof CreateSourceInput>;

/** `signingKey` (`whsec_…`) signs what the source publishes without a token; its delivery key what the relay sends for it. */
export async function createSource(
  deps: SourceDeps,
  principal: Principal,
  body: unknown,
): Promise<{ source: Source; signingKey: string }> {
  requireAdmin(principal);
  const input = parseInput(CreateSourceInput, body);
  const source: Source = {
    id: createId("src", deps.randomBytes(10)),
    name: input.name,
    allowedEventTypes: input.allowed_event_types,
    signingKeyVersion: 1,
    previousValidUntil: null,
    deliveryKeyVersion: 1,
    deliveryKeyPreviousValidUntil: null,
    createdAt: deps.now(),
  };
  const { tenantId } = principal;
  const place = { tenantId, sourceId: source.id, version: 1 };
  const { wrappedKey, text } = await createSourceKey(deps, place);
  const inserted = await deps.sources.insert(tenantId, source, wrappedKey, await createDeliveryKey(deps, place));
  if (!inserted.ok) throw inserted.error === "name_taken" ? nameTaken() : quotaExceeded("sources");
  // A crash between the two leaves a key that leads nowhere and that nobody was shown: a rotation mends both.
  await deps.sourceDirectory.add({ sourceId: source.id, tenantId });
  return { source, signingKey: text };
}

export function nameTaken(): AppError {
  return new AppError("name_taken", "Another source has this name.", [{ path: "name", message: "is taken" }]);
}
