import { ok, refuse, type Result } from "../result.ts";
import { compile, NotCompiled, type Evaluate } from "./compile.ts";
import type { FilterInput } from "./filter-input.ts";
import { checkTypes, parseSource, type ASTNode, type SourceFault } from "./source.ts";
import { Fault, OUT_OF_STEPS, type FaultReason, type Run, type Value } from "./values.ts";

/** A filter that is ready to run. It keeps nothing of its runs. */
export interface Filter {
  evaluate: Evaluate;
  /** What it takes of memory, in nodes. */
  size: number;
}

/** Of filters that say neither that an event matches nor that it does not. Their subscriptions are passed over, on record. */
export type FilterFailure =
  | Exclude<FaultReason, "absent">
  | "not_a_boolean"
  | "filter_work_exceeded"
  | "event_work_exceeded"
  | "invalid_filter";

/** What a filter says of an event. `reason` and `position` are of the fault, an absent field among them, that decided. */
export type FilterResult = { steps: number; position: number | null } & (
  | { outcome: "match"; reason: null }
  | { outcome: "no_match"; reason: "absent" | null }
  | { outcome: "failed"; reason: FilterFailure }
);

/** For a source that was checked when it was saved. Whatever it is, it never throws. */
export function compileFilter(source: string): Result<Filter, SourceFault> {
  const parsed = parseSource(source);
  if (!parsed.ok) return parsed;
  try {
    return ok({ evaluate: compile(parsed.value, new Map()), size: countNodes(parsed.value) });
  } catch (error) {
    if (error instanceof NotCompiled) return refuse(error.fault);
    throw error;
  }
}

/** All that can be known of a source before it meets an event. Null when there is nothing wrong with it. */
export function checkFilter(source: string): SourceFault | null {
  // The ledger's count of a text ends at its first NUL, and half a pair of surrogates would not be stored as it is.
  if (source.includes("\0")) return { message: "has a NUL in it", position: source.indexOf("\0") };
  if (!source.isWellFormed()) return { message: "has half a pair of surrogates in it", position: 0 };
  const compiled = compileFilter(source);
  return compiled.ok ? checkTypes(source) : compiled.error;
}

/** Ends within `maxSteps`, whatever the filter and the event are. Absent is what makes an event not match. */
export function runFilter(filter: Filter, input: FilterInput, maxSteps: number): FilterResult {
  const run: Run = { ...input, left: maxSteps, variables: [] };
  const value = evaluate(filter, run);
  const steps = maxSteps - Math.max(run.left, 0);
  if (value === OUT_OF_STEPS) return { outcome: "failed", reason: "filter_work_exceeded", position: null, steps };
  if (value instanceof Fault) {
    const { reason, position } = value;
    return reason === "absent"
      ? { outcome: "no_match", reason, position, steps }
      : { outcome: "failed", reason, position, steps };
  }
  if (typeof value !== "boolean") return { outcome: "failed", reason: "not_a_boolean", position: 0, steps };
  return { outcome: value ? "match" : "no_match", reason: null, position: null, steps };
}

function evaluate(filter: Filter, run: Run): Value | Fault | typeof OUT_OF_STEPS {
  try {
    return filter.evaluate(run);
  } catch (error) {
    if (error === OUT_OF_STEPS) return OUT_OF_STEPS;
    throw error;
  }
}

function countNodes(node: ASTNode): number {
  let count = 0;
  const open: unknown[] = [node];
  while (open.length > 0) {
    const next = open.pop();
    if (Array.isArray(next)) open.push(...next);
    else if (typeof next === "object" && next !== null && "op" in next && "args" in next) {
      count++;
      open.push(next.args);
    }
  }
  return count;
}
