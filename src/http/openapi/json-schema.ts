import { z } from "zod";
import { NOT_BUILT } from "../../app/parse-input.ts";
import { FIELDS } from "./fields.ts";
import { ANSWERS, REQUESTS } from "./registries.ts";

/** A JSON Schema of draft 2020-12, which is what OpenAPI 3.1 uses. */
export interface JsonSchema {
  $ref?: string;
  type?: string | string[];
  description?: string;
  properties?: Record<string, JsonSchema>;
  required?: string[];
  additionalProperties?: boolean | JsonSchema;
  items?: JsonSchema;
  anyOf?: JsonSchema[];
  enum?: unknown[];
  const?: unknown;
  [keyword: string]: unknown;
}

const PREFIX = "#/components/schemas/";

/** All named schemas of one side: what may be sent is strict, what is answered may grow. */
export function namedSchemas(side: "input" | "output"): Record<string, JsonSchema> {
  const registry = side === "input" ? REQUESTS : ANSWERS;
  const { schemas } = z.toJSONSchema(registry, { io: side, uri: (id) => PREFIX + id });
  return Object.fromEntries(
    Object.entries(schemas).map(([name, schema]) => [name, tidy(schema as JsonSchema, side, name)]),
  );
}

/** One schema in its place: a reference where it has a name; `owner` is whose fields these are where it has none. */
export function schemaOf(schema: z.ZodType, side: "input" | "output", owner = ""): JsonSchema {
  const name = (side === "input" ? REQUESTS : ANSWERS).get(schema as z.ZodType)?.id;
  if (name !== undefined) return { $ref: PREFIX + name };
  return tidy(z.toJSONSchema(schema, { io: side }) as JsonSchema, side, owner);
}

/** What zod gives, without what says nothing, with the descriptions of fields. */
function tidy(given: JsonSchema, side: "input" | "output", name: string): JsonSchema {
  const { $schema: _, $id: __, jsonSchema, ...schema } = given;
  if (jsonSchema !== undefined) return jsonSchema as JsonSchema;
  const { minimum, maximum, anyOf, items, properties, additionalProperties, ...rest } = schema;
  const found: JsonSchema = rest;
  if (minimum !== undefined && minimum !== Number.MIN_SAFE_INTEGER) found["minimum"] = minimum;
  if (maximum !== undefined && maximum !== Number.MAX_SAFE_INTEGER) found["maximum"] = maximum;
  if (items) found.items = tidy(items, side, "");
  if (anyOf) Object.assign(found, tidyUnion(anyOf.map((one) => tidy(one, side, ""))));
  if (properties) {
    const built = Object.entries(properties).filter(([, field]) => field[NOT_BUILT] === undefined);
    found.properties = Object.fromEntries(
      built.map(([field, schema]) => [field, describe(tidy(schema, side, ""), name, field)]),
    );
  }
  // Answers grow: a client that refuses an unknown field would break on the next version.
  if (additionalProperties !== undefined && (side === "input" || additionalProperties !== false)) {
    found.additionalProperties =
      typeof additionalProperties === "object" ? tidy(additionalProperties, side, "") : additionalProperties;
  }
  return found;
}

function describe(schema: JsonSchema, name: string, field: string): JsonSchema {
  const description = FIELDS[`${name}.${field}`] ?? FIELDS[field];
  return description === undefined ? schema : { ...schema, description };
}

/** A value or null, as `type: [.., "null"]` where the value has a plain type. */
function tidyUnion(options: JsonSchema[]): JsonSchema {
  const [value, other] = options;
  if (options.length !== 2 || other!.type !== "null" || typeof value!.type !== "string") return { anyOf: options };
  return { ...value, type: [value!.type, "null"], ...(value!.enum && { enum: [...value!.enum, null] }) };
}
