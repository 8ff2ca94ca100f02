import { z } from "zod";
import { encodeBase64Url } from "../../core/base64.ts";
import { createId } from "../../core/ids.ts";
import type { ApiKey } from "../../core/model.ts";
import { invalidField, quotaExceeded } from "../app-error.ts";
import { hashKey } from "../authenticate.ts";
import { DisplayName } from "../field-schemas.ts";
import { parseInput } from "../parse-input.ts";
import { requireAdmin, type Principal } from "../principal.ts";
import type { ApiKeyDeps } from "./deps.ts";

const KEY_BYTES = 32;
/** Characters of the random part that lists may show: enough to tell keys apart, nothing to guess the rest from. */
const SHOWN_CHARACTERS = 6;

export const CreateApiKeyInput = z.strictObject({
  scope: z.enum(["admin", "read", "publish"]),
  source_id: z.string().nullish(),
  name: DisplayName.nullish(),
  tenant_id: z.string().nullish(),
});
export type CreateApiKeyInput = z.infer<typeof CreateApiKeyInput>;

/** `key` is the only time the key's text is seen: its SHA-256 is what is kept. */
export async function createApiKey(
  deps: ApiKeyDeps,
  principal: Principal,
  body: unknown,
): Promise<{ apiKey: ApiKey; key: string }> {
  requireAdmin(principal);
  const input = parseInput(CreateApiKeyInput, body);
  const sourceId = input.source_id ?? null;
  if (input.scope === "publish" && sourceId === null) throw invalidField("source_id", "is needed for scope publish");
  if (input.scope !== "publish" && sourceId !== null) throw invalidField("source_id", "goes with scope publish only");
  if ((input.tenant_id ?? principal.tenantId) !== principal.tenantId) throw invalidField("tenant_id", "no such tenant");

  const head = `hlk_${deps.shard}_`;
  const key = head + encodeBase64Url(deps.randomBytes(KEY_BYTES));
  const apiKey: ApiKey = {
    id: createId("key", deps.randomBytes(10)),
    prefix: key.slice(0, head.length + SHOWN_CHARACTERS),
    scope: input.scope,
    sourceId,
    name: input.name ?? null,
    createdAt: deps.now(),
  };
  const stored = await deps.apiKeys.insert(principal.tenantId, apiKey, await hashKey(key));
  if (stored === "no_source") throw invalidField("source_id", "no such source");
  if (stored === "full") throw quotaExceeded("API keys");
  return { apiKey, key };
}
