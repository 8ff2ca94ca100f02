import { z } from "zod";
import type { Source } from "../../core/model.ts";
import { formatTime } from "../../core/timestamps.ts";
import { presentTime } from "./time.ts";
import { ANSWERS } from "../openapi/registries.ts";
import { id, time } from "./fields.ts";

export const SourceAnswer = z
  .object({
    id: id("src"),
    name: z.string(),
    allowed_event_types: z.array(z.string()),
    signing_key_version: z.int(),
    previous_valid_until: time.nullable(),
    delivery_key_version: z.int(),
    delivery_key_previous_valid_until: time.nullable(),
    created_at: time,
  })
  .register(ANSWERS, { id: "Source" });
type SourceAnswer = z.infer<typeof SourceAnswer>;

export function presentSource(source: Source): SourceAnswer {
  return {
    id: source.id,
    name: source.name,
    allowed_event_types: source.allowedEventTypes,
    signing_key_version: source.signingKeyVersion,
    previous_valid_until: presentTime(source.previousValidUntil),
    delivery_key_version: source.deliveryKeyVersion,
    delivery_key_previous_valid_until: presentTime(source.deliveryKeyPreviousValidUntil),
    created_at: formatTime(source.createdAt),
  };
}

export const SourceWithKeyAnswer = SourceAnswer.extend({ signing_key: z.string() }).register(ANSWERS, {
  id: "SourceWithKey",
});
type SourceWithKeyAnswer = z.infer<typeof SourceWithKeyAnswer>;

/** With its new signing key, this once. */
export function presentSourceWithKey(created: { source: Source; signingKey: string }): SourceWithKeyAnswer {
  const { source, signingKey } = created;
  return { ...presentSource(source), signing_key: signingKey };
}
