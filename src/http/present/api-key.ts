import type { ApiKey } from "../../core/model.ts";
import { formatTime } from "../../core/timestamps.ts";

export function presentApiKey(apiKey: ApiKey) {
  return {
    id: apiKey.id,
    prefix: apiKey.prefix,
    scope: apiKey.scope,
    source_id: apiKey.sourceId,
    name: apiKey.name,
    created_at: formatTime(apiKey.createdAt),
  };
}
