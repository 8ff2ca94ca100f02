import { z } from "zod";
import type { EventType, PinnedSubscription } from "../../core/model.ts";
import { AppError, invalidField, notFound, quotaExceeded } from "../app-error.ts";
import { SchemaVersion } from "../field-schemas.ts";
import { parseInput } from "../parse-input.ts";
import { requireAdmin, type Principal } from "../principal.ts";
import { untilFresh } from "../until-fresh.ts";
import { JsonSchemaInput, ScopeWord, type EventTypeDeps } from "./deps.ts";
import { getEventType } from "./read-event-type.ts";

export const UpdateEventTypeInput = z.strictObject({
  required_scope: ScopeWord.nullish(),
  schema_version: SchemaVersion.optional(),
  json_schema: JsonSchemaInput.optional(),
  retired: z.boolean().optional(),
  force: z.boolean().default(false),
});
export type UpdateEventTypeInput = z.infer<typeof UpdateEventTypeInput>;

/**
 * Changes what a type asks for, or one of its versions. A version that subscriptions ask for is retired only by `force`; who
 * they are is in the refusal (`version_in_use`). The word is of one revision with the change: nobody comes in between.
 */
export async function updateEventType(
  deps: EventTypeDeps,
  principal: Principal,
  name: string,
  body: unknown,
): Promise<EventType> {
  requireAdmin(principal);
  const input = parseInput(UpdateEventTypeInput, body);
  checkFields(input);
  const { tenantId } = principal;
  if (input.required_scope === undefined && input.schema_version === undefined) {
    return getEventType(deps, principal, name);
  }
  return untilFresh(async () => {
    const seen = await deps.eventTypes.findWithPinned(tenantId, name, input.schema_version ?? 0);
    if (!seen) throw notFound("event type");
    const { eventType, pinned, tenantRevision } = seen;
    const version = eventType.versions.find(({ schemaVersion }) => schemaVersion === input.schema_version);
    if (input.schema_version !== undefined && !version) {
      throw invalidField("schema_version", `is not a registered version of ${name}`);
    }
    const retires = input.retired === true && version!.retiredAt === null;
    if (retires && !input.force && pinned.length > 0) throw inUse(name, version!.schemaVersion, pinned);
    const changes = {
      requiredScope: input.required_scope,
      version: version && {
        schemaVersion: version.schemaVersion,
        isRetired: input.retired,
        jsonSchema: input.json_schema === undefined ? undefined : toText(input.json_schema),
      },
    };
    const stored = await deps.eventTypes.update(tenantId, name, changes, tenantRevision, deps.now());
    if (stored === "full") throw quotaExceeded("characters of schemas");
    return stored === "stored" ? deps.eventTypes.find(tenantId, name) : null;
  });
}

function checkFields({ schema_version, json_schema, retired, force }: UpdateEventTypeInput): void {
  const isOfVersion = json_schema !== undefined || retired !== undefined;
  if (isOfVersion && schema_version === undefined) {
    throw invalidField("schema_version", "is required with json_schema and retired: they are of one version");
  }
  if (!isOfVersion && schema_version !== undefined) {
    throw invalidField("schema_version", "says which version json_schema or retired is of, and neither is given");
  }
  if (force && retired !== true) throw invalidField("force", "belongs to retired: true");
}

function inUse(name: string, schemaVersion: number, pinned: PinnedSubscription[]): AppError {
  const count = pinned.length === 1 ? "A subscription asks" : `${pinned.length} subscriptions ask`;
  const error = new AppError(
    "version_in_use",
    `${count} for version ${schemaVersion} of ${name}. Move them first, or say "force": true.`,
  );
  error.subscriptions = pinned;
  return error;
}

function toText(schema: unknown): string | null {
  return schema === null ? null : JSON.stringify(schema);
}
