import { z } from "zod";
import type { ApiKey } from "../../core/model.ts";
import { notFound } from "../app-error.ts";
import { DisplayName } from "../field-schemas.ts";
import { parseInput } from "../parse-input.ts";
import { requireAdmin, type Principal } from "../principal.ts";
import type { ApiKeyDeps } from "./deps.ts";

/** What a key may do is fixed when it is made: whoever holds it must not gain by a change they did not see. */
export const UpdateApiKeyInput = z.strictObject({ name: DisplayName.nullish() });
export type UpdateApiKeyInput = z.infer<typeof UpdateApiKeyInput>;

export async function updateApiKey(deps: ApiKeyDeps, principal: Principal, id: string, body: unknown): Promise<ApiKey> {
  requireAdmin(principal);
  const input = parseInput(UpdateApiKeyInput, body);
  const updated = await deps.apiKeys.update(principal.tenantId, id, input);
  if (!updated) throw notFound("API key");
  return updated;
}
