import { Environment, type ASTNode } from "@marcbachmann/cel-js";
import { ok, refuse, type Result } from "../result.ts";
import {
  EVENT_FIELDS,
  MAX_FILTER_DEPTH,
  MAX_FILTER_ELEMENTS,
  MAX_FILTER_LENGTH,
  MAX_FILTER_NODES,
} from "./language.ts";

export type { ASTNode };

/** What is wrong with a source, and where: characters (UTF-16 units) from its start. */
export interface SourceFault {
  message: string;
  position: number;
}

let made: Environment | null = null;

/** Parses and checks, and never evaluates: what the library evaluates has no bound. Made when somebody filters. */
function environment(): Environment {
  return (made ??= new Environment({
    homogeneousAggregateLiterals: false,
    limits: {
      maxAstNodes: MAX_FILTER_NODES,
      maxDepth: MAX_FILTER_DEPTH,
      maxListElements: MAX_FILTER_ELEMENTS,
      maxMapEntries: MAX_FILTER_ELEMENTS,
      maxCallArguments: 4,
    },
  })
    .registerVariable("payload", "dyn")
    .registerVariable({ name: "event", schema: { ...EVENT_FIELDS } }));
}

/** The syntax tree of a source that is within the bounds. */
export function parseSource(source: string): Result<ASTNode, SourceFault> {
  if (source.length > MAX_FILTER_LENGTH) {
    return refuse({ message: `has more than ${MAX_FILTER_LENGTH} characters`, position: MAX_FILTER_LENGTH });
  }
  try {
    return ok(environment().parse(source).ast);
  } catch (error) {
    return refuse(toFault(error));
  }
}

/** What can be known to be wrong before there is an event: unknown names and functions, kinds that do not go together. */
export function checkTypes(source: string): SourceFault | null {
  const { valid, type, error } = environment().check(source);
  if (!valid) return toFault(error);
  return type === "bool" || type === "dyn" ? null : { message: `is ${type}, not true or false`, position: 0 };
}

/** The library's own errors say where. Whatever else it throws at a hostile source is a refusal too. */
function toFault(error: unknown): SourceFault {
  const { summary, range } = (error ?? {}) as { summary?: unknown; range?: { start?: unknown } };
  const message = typeof summary === "string" ? summary.slice(0, 200) : "is not an expression";
  return { message, position: typeof range?.start === "number" ? range.start : 0 };
}

/** In a text that is a source: characters (UTF-16 units) from its start, and line and column from 1, as editors count them. */
export interface SourcePosition {
  offset: number;
  line: number;
  column: number;
}

export function locate(source: string, offset: number): SourcePosition {
  const before = source.slice(0, offset).split("\n");
  return { offset, line: before.length, column: before.at(-1)!.length + 1 };
}
