import { OutOfWork, runNode, type At, type Json, type Run, type SchemaNode } from "./json-schema-node.ts";

/** Steps of work that any payload may take, and a byte of it more. */
const FREE_STEPS = 50_000;
const STEPS_PER_BYTE = 8;
/** What the checks of one publish request may take together before the last of them. */
export const MAX_REQUEST_CHECK_STEPS = 20_000_000;

/** Of one request. */
export interface CheckBudget {
  stepsLeft: number;
}

export type SchemaVerdict =
  | { kind: "valid" }
  /** Dotted paths from the payload's root, empty for the payload itself; at most 20. */
  | { kind: "invalid"; faults: { path: string; message: string }[] }
  /** The schema asks for more work than a payload of this size may take. */
  | { kind: "too_much_work" };

/**
 * Holds a payload to a schema. However hostile either is, it ends: work is counted, and bounded by the payload's size. What was
 * taken is taken off the budget, which may fall below 0.
 */
export function validateJson(
  schema: SchemaNode,
  value: Json,
  payloadBytes: number,
  budget: CheckBudget = { stepsLeft: MAX_REQUEST_CHECK_STEPS },
): SchemaVerdict {
  const steps = FREE_STEPS + STEPS_PER_BYTE * payloadBytes;
  const run: Run = { stepsLeft: steps, depth: 0, quiet: 0, faults: [] };
  try {
    if (runNode(schema, value, null, run)) return { kind: "valid" };
  } catch (error) {
    if (error instanceof OutOfWork) return { kind: "too_much_work" };
    throw error;
  } finally {
    budget.stepsLeft -= steps - run.stepsLeft;
  }
  return { kind: "invalid", faults: run.faults.map(({ at, message }) => ({ path: spell(at), message })) };
}

function spell(at: At | null): string {
  const keys: (string | number)[] = [];
  for (let here = at; here !== null; here = here.parent) keys.push(here.key);
  return keys.toReversed().join(".");
}
