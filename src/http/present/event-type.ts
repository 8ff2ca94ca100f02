import { z } from "zod";
import type { EventType } from "../../core/model.ts";
import { formatTime } from "../../core/timestamps.ts";
import { ANSWERS } from "../openapi/registries.ts";
import { time } from "./fields.ts";
import { presentTime } from "./time.ts";

const EventTypeVersionAnswer = z
  .object({
    schema_version: z.int(),
    json_schema: z.record(z.string(), z.unknown()).nullable(),
    retired_at: time.nullable(),
    created_at: time,
  })
  .register(ANSWERS, { id: "EventTypeVersion" });

export const EventTypeAnswer = z
  .object({
    name: z.string(),
    required_scope: z.string().nullable(),
    versions: z.array(EventTypeVersionAnswer),
    created_at: time,
  })
  .register(ANSWERS, { id: "EventType" });
type EventTypeAnswer = z.infer<typeof EventTypeAnswer>;

export function presentEventType(eventType: EventType): EventTypeAnswer {
  return {
    name: eventType.name,
    required_scope: eventType.requiredScope,
    versions: eventType.versions.map((version) => ({
      schema_version: version.schemaVersion,
      json_schema: version.jsonSchema,
      retired_at: presentTime(version.retiredAt),
      created_at: formatTime(version.createdAt),
    })),
    created_at: formatTime(eventType.createdAt),
  };
}
