import type { SchemaNode } from "../../core/json-schema-node.ts";
import { validateJson, type CheckBudget } from "../../core/json-schema-validate.ts";
import type { RegisteredTypes } from "../../core/registered-types.ts";
import { AppError, invalidField } from "../app-error.ts";

/** An event that is published, with its further versions and their places in the request. */
interface Published {
  type: string;
  schemaVersion: number;
  payload: Uint8Array;
  payloadIsJson: boolean;
  variants: { index: number; schemaVersion: number; payload: Uint8Array }[];
}

const MAX_PATH_LENGTH = 128;

/**
 * Holds an event to what is registered of its type: that it is, where the tenant asks for that, and each payload to the schema of
 * its version. Throws `event_type_not_registered`, `fan_out_too_large`, or `validation_failed` with the paths into the
 * payload.
 */
export function checkRegistered(
  config: { types: RegisteredTypes; requiresRegistration: boolean },
  { type, schemaVersion, payload, payloadIsJson, variants }: Published,
  budget: CheckBudget,
): void {
  const registered = config.types.get(type);
  const check = (under: string, version: number, bytes: Uint8Array) => {
    const known = registered?.versions.get(version);
    if (!known && config.requiresRegistration) throw notRegistered(type, registered ? version : null, under);
    const schema = known?.schema() ?? null;
    if (schema === null) return;
    const path = `${under}payload`;
    if (!payloadIsJson) throw invalidField(path, `must be JSON: version ${version} of ${type} has a schema`);
    if (budget.stepsLeft <= 0) throw tooMuchToCheck();
    const faults = findFaults(schema, bytes, budget);
    if (faults.length === 0) return;
    throw new AppError(
      "validation_failed",
      `The payload does not fit version ${version} of ${type}.`,
      faults.map((fault) => ({
        path: (fault.path === "" ? path : `${path}.${fault.path}`).slice(0, MAX_PATH_LENGTH),
        message: fault.message,
      })),
    );
  };
  check("", schemaVersion, payload);
  for (const { index, schemaVersion: version, payload: bytes } of variants) check(`variants.${index}.`, version, bytes);
}

function findFaults(schema: SchemaNode, payload: Uint8Array, budget: CheckBudget): { path: string; message: string }[] {
  const verdict = validateJson(schema, JSON.parse(new TextDecoder().decode(payload)), payload.length, budget);
  if (verdict.kind === "too_much_work") {
    return [{ path: "", message: "takes more work to check than a payload of this size may" }];
  }
  return verdict.kind === "invalid" ? verdict.faults : [];
}

function tooMuchToCheck(): AppError {
  return new AppError(
    "fan_out_too_large",
    "Schemas have used up what one request may cost before this event. Publish fewer at once: this one, and those after it.",
  );
}

/** `version` null: nothing of the type is. */
function notRegistered(type: string, version: number | null, under: string): AppError {
  const what = version === null ? type : `Version ${version} of ${type}`;
  const detail = `${what} is not registered, and this tenant publishes registered types only.`;
  const path = version === null ? "type" : `${under}schema_version`;
  return new AppError("event_type_not_registered", detail, [{ path, message: "is not registered" }]);
}
