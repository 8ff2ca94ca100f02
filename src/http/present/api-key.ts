import { z } from "zod";
import type { ApiKey } from "../../core/model.ts";
import { formatTime } from "../../core/timestamps.ts";
import { ANSWERS } from "../openapi/registries.ts";
import { id, time } from "./fields.ts";

export const ApiKeyAnswer = z
  .object({
    id: id("key"),
    prefix: z.string(),
    scope: z.enum(["admin", "read", "publish"]),
    source_id: id("src").nullable(),
    name: z.string().nullable(),
    created_at: time,
  })
  .register(ANSWERS, { id: "ApiKey" });
type ApiKeyAnswer = z.infer<typeof ApiKeyAnswer>;

export const CreatedApiKeyAnswer = ApiKeyAnswer.extend({ key: z.string() }).register(ANSWERS, { id: "CreatedApiKey" });
type CreatedApiKeyAnswer = z.infer<typeof CreatedApiKeyAnswer>;

export function presentApiKey(apiKey: ApiKey): ApiKeyAnswer {
  return {
    id: apiKey.id,
    prefix: apiKey.prefix,
    scope: apiKey.scope,
    source_id: apiKey.sourceId,
    name: apiKey.name,
    created_at: formatTime(apiKey.createdAt),
  };
}

/** With the text of the key, this once. */
export function presentCreatedApiKey({ apiKey, key }: { apiKey: ApiKey; key: string }): CreatedApiKeyAnswer {
  return { ...presentApiKey(apiKey), key };
}
