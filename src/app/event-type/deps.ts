import { z } from "zod";
import { SCOPE_WORD } from "../../core/grammar.ts";
import { compileJsonSchema } from "../../core/json-schema.ts";
import { isObject } from "../../core/json-schema-node.ts";
import type {
  EventType,
  EventTypeChanges,
  NewEventTypeVersion,
  PageRequest,
  PinnedSubscription,
} from "../../core/model.ts";
import type { Runtime } from "../runtime.ts";

export interface EventTypeDeps extends Pick<Runtime, "now"> {
  eventTypes: {
    /** `taken` when the type has this version already, `full` when the tenant has all it may have; then nothing is stored. */
    insert(tenantId: string, version: NewEventTypeVersion): Promise<"stored" | "taken" | "full">;
    find(tenantId: string, name: string): Promise<EventType | null>;
    page(tenantId: string, request: PageRequest): Promise<EventType[]>;
    /** The type, and who asks for one of its versions, as of one revision of the tenant's configuration. */
    findWithPinned(
      tenantId: string,
      name: string,
      schemaVersion: number,
    ): Promise<{ tenantRevision: number; eventType: EventType; pinned: PinnedSubscription[] } | null>;
    /**
     * `stale`, and nothing changed, when the configuration has changed since `tenantRevision`; `full` when the schema is too
     * much.
     */
    update(
      tenantId: string,
      name: string,
      changes: EventTypeChanges,
      tenantRevision: number,
      now: number,
    ): Promise<"stored" | "stale" | "full">;
    delete(tenantId: string, name: string): Promise<boolean>;
  };
}

/** One word of an entitlement. */
export const ScopeWord = z
  .string()
  .regex(SCOPE_WORD, "must be one word of 1 to 128 visible ASCII characters, without quotes and backslashes");

/** A JSON Schema that this relay can hold payloads to. */
export const JsonSchemaInput = z
  .unknown()
  .superRefine((schema, context) => {
    if (schema === undefined || schema === null) return;
    if (!isObject(schema)) return context.addIssue({ code: "custom", message: "must be an object" });
    const compiled = compileJsonSchema(schema);
    if (compiled.ok) return;
    const [, ...path] = compiled.error.path.split(".");
    context.addIssue({ code: "custom", message: compiled.error.message, path });
  })
  .meta({ jsonSchema: { type: ["object", "null"] } });
