import { ok, refuse, type Result } from "./result.ts";
import { APPLICATORS } from "./json-schema-applicators.ts";
import { CHECKS } from "./json-schema-checks.ts";
import {
  fail,
  isObject,
  runNode,
  type Json,
  type JsonObject,
  type Place,
  type SchemaNode,
} from "./json-schema-node.ts";

/** What is wrong with a schema, and where in it: a dotted path. */
export interface SchemaFault {
  path: string;
  message: string;
}

/** Bounds of a schema: what is made of it is kept in memory, and run with every payload. */
const MAX_DEPTH = 32;
const MAX_SUBSCHEMAS = 1_000;
const MAX_PATTERNS = 50;

/** Where other schemas stand that nothing applies of itself. */
const DEFINITIONS = ["$defs", "definitions"];
/** What says something to people and tools, and nothing of what is valid; so does every name that begins with `x-`. */
const ANNOTATIONS = ["title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment"];
const DIALECTS = /^https?:\/\/json-schema\.org\/(draft-07|draft\/2019-09|draft\/2020-12)\/schema#?$/;

class Refusal extends Error {
  readonly fault: SchemaFault;

  constructor(fault: SchemaFault) {
    super(fault.message);
    this.fault = fault;
  }
}

/**
 * Compiles a JSON Schema (draft 2020-12, and of older ones what means the same), or says what of it is not checked here: a
 * keyword that would be passed over is refused, and so are references to anything but the schema itself.
 */
export function compileJsonSchema(schema: unknown): Result<SchemaNode, SchemaFault> {
  try {
    return ok(compileWhole(schema as Json));
  } catch (error) {
    if (error instanceof Refusal) return refuse(error.fault);
    throw error;
  }
}

function compileWhole(root: Json): SchemaNode {
  /** By its own object: what a reference points to is compiled once, wherever it stands. */
  const known = new Map<JsonObject, SchemaNode>();
  const references: { node: SchemaNode; pointer: string; path: string }[] = [];
  let subschemas = 0;
  let patterns = 0;

  const refuseAt = (path: string, message: string): never => {
    throw new Refusal({ path, message });
  };

  function compile(schema: Json | undefined, path: string, depth: number): SchemaNode {
    if (++subschemas > MAX_SUBSCHEMAS) refuseAt(path, `has more than ${MAX_SUBSCHEMAS} schemas in it`);
    if (depth > MAX_DEPTH) refuseAt(path, `is nested more than ${MAX_DEPTH} deep`);
    if (schema === true) return { checks: [] };
    if (schema === false) return { checks: [(_, at, run) => fail(run, at, "is not allowed")] };
    if (!isObject(schema)) return refuseAt(path, "must be a schema: an object, true or false");
    const node: SchemaNode = { checks: [] };
    known.set(schema, node);
    const place = (keyword: string): Place => ({
      path: `${path}.${keyword}`,
      schema,
      compile: (below, under) => compile(below, under, depth + 1),
      refuse: (message, under = `${path}.${keyword}`) => refuseAt(under, message),
      countPattern: () => {
        if (++patterns > MAX_PATTERNS) refuseAt(path, `has more than ${MAX_PATTERNS} patterns`);
      },
    });
    for (const [keyword, given] of Object.entries(schema)) {
      const here = place(keyword);
      const check = Object.hasOwn(CHECKS, keyword) ? CHECKS[keyword] : undefined;
      const applicator = Object.hasOwn(APPLICATORS, keyword) ? APPLICATORS[keyword] : undefined;
      if (check) {
        if (keyword === "pattern") here.countPattern();
        const compiled = check(given);
        if (!compiled.ok) here.refuse(compiled.error);
        else node.checks.push(compiled.value);
      } else if (applicator) {
        const applied = applicator(given, here);
        if (applied) node.checks.push(applied);
      } else if (keyword === "$ref") {
        if (typeof given !== "string" || !/^#(\/|$)/.test(given)) here.refuse("must point into this schema: #/$defs/…");
        references.push({ node, pointer: given as string, path: here.path });
      } else if (DEFINITIONS.includes(keyword)) {
        if (!isObject(given)) here.refuse("must be schemas, by name");
        for (const [name, one] of Object.entries(given as JsonObject)) here.compile(one, `${here.path}.${name}`);
      } else if (keyword === "$schema" || keyword === "$id") {
        if (depth > 0 || typeof given !== "string") here.refuse("belongs to the schema as a whole");
        if (keyword === "$schema" && !DIALECTS.test(given as string))
          here.refuse("must be draft-07, 2019-09 or 2020-12");
      } else if (!ANNOTATIONS.includes(keyword) && !keyword.startsWith("x-")) {
        here.refuse("is not a keyword that is checked here");
      }
    }
    return node;
  }

  const node = compile(root, "json_schema", 0);
  for (const { node: from, pointer, path } of references) {
    const found = resolve(root, pointer);
    const target = typeof found === "boolean" ? compile(found, path, 0) : known.get(found as JsonObject);
    if (!target) refuseAt(path, "points to no schema in this one");
    else from.checks.push((value, at, run) => runNode(target, value, at, run));
  }
  return node;
}

/** What a JSON pointer (RFC 6901, as a fragment) leads to; undefined for nothing. */
function resolve(root: Json, pointer: string): Json | undefined {
  let found: Json | undefined = root;
  for (const part of pointer.split("/").slice(1)) {
    const key = unescapePointer(part);
    if (key === null || typeof found !== "object" || found === null || !Object.hasOwn(found, key)) return undefined;
    found = (found as JsonObject)[key];
  }
  return found;
}

function unescapePointer(part: string): string | null {
  try {
    return decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
  } catch {
    return null;
  }
}
