import { compileJsonSchema } from "./json-schema.ts";
import type { SchemaNode } from "./json-schema-node.ts";

/** A version of a type as it is stored. */
export interface RegisteredVersion {
  name: string;
  /** Of the type: each of its versions says the same. */
  requiredScope: string | null;
  schemaVersion: number;
  /** As text; null where payloads are not checked. */
  jsonSchema: string | null;
  isRetired: boolean;
}

/** A type as a publish sees it. */
export interface RegisteredType {
  requiredScope: string | null;
  versions: ReadonlyMap<number, { isRetired: boolean; schema(): SchemaNode | null }>;
}

export type RegisteredTypes = ReadonlyMap<string, RegisteredType>;

/** By name. A schema is compiled when a payload is first held to it, and then kept. */
export function collectTypes(versions: RegisteredVersion[]): RegisteredTypes {
  const types = Map.groupBy(versions, ({ name }) => name);
  return new Map(
    [...types].map(([name, ofType]) => [
      name,
      {
        requiredScope: ofType[0]!.requiredScope,
        versions: new Map(
          ofType.map(({ schemaVersion, isRetired, jsonSchema }) => [
            schemaVersion,
            { isRetired, schema: once(() => compileStored(name, schemaVersion, jsonSchema)) },
          ]),
        ),
      },
    ]),
  );
}

function compileStored(name: string, schemaVersion: number, text: string | null): SchemaNode | null {
  if (text === null) return null;
  const compiled = compileJsonSchema(JSON.parse(text));
  // It compiled when it was stored.
  if (!compiled.ok) throw new Error(`the schema of ${name} ${schemaVersion}: ${compiled.error.message}`);
  return compiled.value;
}

function once<T>(make: () => T): () => T {
  let made: { value: T } | null = null;
  return () => (made ??= { value: make() }).value;
}
