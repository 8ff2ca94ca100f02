/** A schema as it is run: nodes that know their subschemas, and a run that counts its work. */

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export type JsonObject = { [key: string]: Json };

/** Where a value stands in the payload; spelled out only when something is wrong with it. */
export interface At {
  parent: At | null;
  key: string | number;
}

/** Looks at one value: says what is wrong with it, in `run`, and whether nothing is. */
export type Check = (value: Json, at: At | null, run: Run) => boolean;

/** Its checks are there once the whole schema is compiled, since a schema may refer to itself. */
export interface SchemaNode {
  checks: Check[];
}

/** What an applicator is compiled with. */
export interface Place {
  path: string;
  /** The schema it stands in. */
  schema: JsonObject;
  /** Compiles a schema below this one; throws a `Refusal`. */
  compile(schema: Json | undefined, path: string): SchemaNode;
  refuse(message: string, path?: string): never;
  countPattern(): void;
}

export interface Run {
  stepsLeft: number;
  depth: number;
  /** Above 0 while what fails is only one of several ways: it is told of nowhere. */
  quiet: number;
  faults: { at: At | null; message: string }[];
}

/** What a run ends with when it has taken all the steps it may. Never leaves this folder. */
export class OutOfWork extends Error {}

/** Nested schemas at one moment: what a payload of the deepest nesting takes with some references at each level. */
const MAX_RUN_DEPTH = 600;
const MAX_FAULTS = 20;

export function spend(run: Run, steps: number): void {
  run.stepsLeft -= steps;
  if (run.stepsLeft < 0) throw new OutOfWork();
}

export function fail(run: Run, at: At | null, message: string): false {
  if (run.quiet === 0 && run.faults.length < MAX_FAULTS) run.faults.push({ at, message });
  return false;
}

/** Runs all checks, so that a producer is told of every fault at once; quietly the first one is enough. */
export function runNode(node: SchemaNode, value: Json, at: At | null, run: Run): boolean {
  if (run.depth === MAX_RUN_DEPTH) throw new OutOfWork();
  spend(run, 1 + node.checks.length);
  run.depth++;
  let isValid = true;
  for (const check of node.checks) {
    if (check(value, at, run)) continue;
    isValid = false;
    if (run.quiet > 0) break;
  }
  run.depth--;
  return isValid;
}

/** Whether a value fits, without a word about why not. */
export function fits(node: SchemaNode, value: Json, at: At | null, run: Run): boolean {
  run.quiet++;
  const isValid = runNode(node, value, at, run);
  run.quiet--;
  return isValid;
}

/** A text that two values share when JSON Schema calls them equal: keys in order, numbers as JavaScript has them. */
export function canonical(value: Json, run: Run): string {
  const parts: string[] = [];
  spell(value, parts, run);
  return parts.join("");
}

/** Into one list, since a text for each level would copy what is deep once a level. */
function spell(value: Json, parts: string[], run: Run): void {
  if (value === null || typeof value !== "object") {
    spend(run, typeof value === "string" ? 1 + value.length / 16 : 1);
    parts.push(JSON.stringify(value));
    return;
  }
  // An empty one is work as well.
  spend(run, 1);
  if (Array.isArray(value)) {
    parts.push("[");
    for (const one of value) {
      spell(one, parts, run);
      parts.push(",");
    }
    parts.push("]");
    return;
  }
  const keys = Object.keys(value);
  spend(run, keys.length);
  parts.push("{");
  for (const key of keys.toSorted()) {
    spend(run, key.length / 16);
    parts.push(JSON.stringify(key), ":");
    spell(value[key]!, parts, run);
    parts.push(",");
  }
  parts.push("}");
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
