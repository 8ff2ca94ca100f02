import { validateJson } from "../../core/json-schema-validate.ts";
import type { RegisteredTypes } from "../../core/registered-types.ts";
import { AppError, invalidField } from "../app-error.ts";

/** Of an event that is published. */
interface Published {
  payload: Uint8Array;
  payloadIsJson: boolean;
}

const MAX_PATH_LENGTH = 128;

/**
 * Holds an event to what is registered of its type: that it is, where the tenant asks for that, and its payload to the schema of
 * its version. Throws `event_type_not_registered`, or `validation_failed` with the paths into the payload.
 */
export function checkRegistered(
  config: { types: RegisteredTypes; requiresRegistration: boolean },
  { type, schema_version }: { type: string; schema_version?: number | null | undefined },
  { payload, payloadIsJson }: Published,
): void {
  const schemaVersion = schema_version ?? 1;
  const version = config.types.get(type)?.versions.get(schemaVersion);
  if (!version) {
    if (config.requiresRegistration) throw notRegistered(config.types, type, schemaVersion);
    return;
  }
  const schema = version.schema();
  if (schema === null) return;
  if (!payloadIsJson) {
    throw invalidField("payload", `must be JSON: version ${schemaVersion} of ${type} has a schema`);
  }
  const verdict = validateJson(schema, JSON.parse(new TextDecoder().decode(payload)), payload.length);
  if (verdict.kind === "valid") return;
  const faults =
    verdict.kind === "invalid"
      ? verdict.faults
      : [{ path: "", message: "takes more work to check than a payload of this size may" }];
  throw new AppError(
    "validation_failed",
    `The payload does not fit version ${schemaVersion} of ${type}.`,
    faults.map(({ path, message }) => ({
      path: (path === "" ? "payload" : `payload.${path}`).slice(0, MAX_PATH_LENGTH),
      message,
    })),
  );
}

function notRegistered(types: RegisteredTypes, type: string, schemaVersion: number): AppError {
  const [path, what] = types.has(type)
    ? (["schema_version", `Version ${schemaVersion} of ${type}`] as const)
    : (["type", type] as const);
  const detail = `${what} is not registered, and this tenant publishes registered types only.`;
  return new AppError("event_type_not_registered", detail, [{ path, message: "is not registered" }]);
}
