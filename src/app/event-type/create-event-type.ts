import { z } from "zod";
import type { EventType } from "../../core/model.ts";
import { AppError, notFound, quotaExceeded } from "../app-error.ts";
import { EventTypeName, SchemaVersion } from "../field-schemas.ts";
import { parseInput } from "../parse-input.ts";
import { requireAdmin, type Principal } from "../principal.ts";
import { JsonSchemaInput, ScopeWord, type EventTypeDeps } from "./deps.ts";

export const CreateEventTypeInput = z.strictObject({
  name: EventTypeName,
  schema_version: SchemaVersion.default(1),
  json_schema: JsonSchemaInput.optional(),
  required_scope: ScopeWord.nullish(),
});
export type CreateEventTypeInput = z.infer<typeof CreateEventTypeInput>;

/** Registers a type, or another version of one. A scope that is given is the type's from then on. */
export async function createEventType(deps: EventTypeDeps, principal: Principal, body: unknown): Promise<EventType> {
  requireAdmin(principal);
  const input = parseInput(CreateEventTypeInput, body);
  const { name, schema_version: schemaVersion, required_scope: requiredScope } = input;
  const stored = await deps.eventTypes.insert(principal.tenantId, {
    name,
    schemaVersion,
    requiredScope,
    jsonSchema: input.json_schema == null ? null : JSON.stringify(input.json_schema),
    createdAt: deps.now(),
  });
  if (stored === "taken") {
    throw new AppError("version_taken", `${name} has a version ${schemaVersion} already.`);
  }
  if (stored === "full") throw quotaExceeded("versions of event types, or characters of their schemas,");
  const eventType = await deps.eventTypes.find(principal.tenantId, name);
  if (!eventType) throw notFound("event type");
  return eventType;
}
