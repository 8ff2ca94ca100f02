import { OutOfWork, runNode, type At, type Json, type Run, type SchemaNode } from "./json-schema-node.ts";

/** Steps of work that any payload may take, and a byte of it more. */
const FREE_STEPS = 50_000;
const STEPS_PER_BYTE = 8;

export type SchemaVerdict =
  | { kind: "valid" }
  /** Dotted paths from the payload's root, empty for the payload itself; at most 20. */
  | { kind: "invalid"; faults: { path: string; message: string }[] }
  /** The schema asks for more work than a payload of this size may take. */
  | { kind: "too_much_work" };

/** Holds a payload to a schema. However hostile either is, it ends: work is counted, and bounded by the payload's size. */
export function validateJson(schema: SchemaNode, value: Json, payloadBytes: number): SchemaVerdict {
  const run: Run = { stepsLeft: FREE_STEPS + STEPS_PER_BYTE * payloadBytes, depth: 0, quiet: 0, faults: [] };
  try {
    if (runNode(schema, value, null, run)) return { kind: "valid" };
  } catch (error) {
    if (error instanceof OutOfWork) return { kind: "too_much_work" };
    throw error;
  }
  return { kind: "invalid", faults: run.faults.map(({ at, message }) => ({ path: spell(at), message })) };
}

function spell(at: At | null): string {
  const keys: (string | number)[] = [];
  for (let here = at; here !== null; here = here.parent) keys.push(here.key);
  return keys.toReversed().join(".");
}
