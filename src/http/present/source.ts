import { z } from "zod";
import type { Source } from "../../core/model.ts";
import { formatTime } from "../../core/timestamps.ts";
import { ANSWERS } from "../openapi/registries.ts";
import { id, time } from "./fields.ts";

export const SourceAnswer = z
  .object({
    id: id("src"),
    name: z.string(),
    allowed_event_types: z.array(z.string()),
    signing_key_version: z.int(),
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
    created_at: formatTime(source.createdAt),
  };
}
