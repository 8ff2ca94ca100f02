import type { Source } from "../../core/model.ts";
import { formatTime } from "../../core/timestamps.ts";
import { presentTime } from "./time.ts";

export function presentSource(source: Source) {
  return {
    id: source.id,
    name: source.name,
    allowed_event_types: source.allowedEventTypes,
    signing_key_version: source.signingKeyVersion,
    previous_valid_until: presentTime(source.previousValidUntil),
    created_at: formatTime(source.createdAt),
  };
}

/** With its new signing key, this once. */
export function presentSourceWithKey({ source, signingKey }: { source: Source; signingKey: string }) {
  return { ...presentSource(source), signing_key: signingKey };
}
