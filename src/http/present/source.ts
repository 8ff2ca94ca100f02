import type { Source } from "../../core/model.ts";
import { formatTime } from "../../core/timestamps.ts";

export function presentSource(source: Source) {
  return {
    id: source.id,
    name: source.name,
    allowed_event_types: source.allowedEventTypes,
    signing_key_version: source.signingKeyVersion,
    created_at: formatTime(source.createdAt),
  };
}
