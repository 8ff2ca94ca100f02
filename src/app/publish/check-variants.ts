import { z } from "zod";
import { MAX_VARIANTS } from "../../core/event-variants.ts";
import type { PublishedVariant } from "../../core/publish-body.ts";
import { AppError, invalidField } from "../app-error.ts";
import { SchemaVersion } from "../field-schemas.ts";
import { parseInput } from "../parse-input.ts";

const VariantInput = z.strictObject({ schema_version: SchemaVersion });

/** A variant that may be published; `index` is its place in the request. */
export interface CheckedVariant {
  index: number;
  schemaVersion: number;
  payload: Uint8Array;
}

/** Lowest version first. Throws `validation_failed` with the place of what is wrong, or `payload_too_large`. */
export function checkVariants(
  ownVersion: number,
  variants: PublishedVariant[],
  maxPayloadBytes: number,
): CheckedVariant[] {
  if (variants.length > MAX_VARIANTS) throw invalidField("variants", `must have at most ${MAX_VARIANTS} entries`);
  const seen = new Set([ownVersion]);
  const checked = variants.map(({ fields, payload }, index) => {
    const at = (name: string) => `variants.${index}.${name}`;
    const schemaVersion = underPath(`variants.${index}`, () => parseInput(VariantInput, fields)).schema_version;
    if (payload === null) throw invalidField(at("payload"), "is required");
    if (payload.length > maxPayloadBytes) {
      throw new AppError(
        "payload_too_large",
        `The payload of ${at("payload")} is larger than ${maxPayloadBytes} bytes.`,
      );
    }
    if (seen.has(schemaVersion)) throw invalidField(at("schema_version"), "is given twice in this event");
    seen.add(schemaVersion);
    return { index, schemaVersion, payload };
  });
  return checked.toSorted((a, b) => a.schemaVersion - b.schemaVersion);
}

function underPath<T>(path: string, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const errors = error.errors?.map((one) => ({ ...one, path: one.path === "" ? path : `${path}.${one.path}` }));
    throw new AppError(error.code, error.message, errors);
  }
}
