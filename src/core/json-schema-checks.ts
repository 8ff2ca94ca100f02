/** Keywords that look at a value and no further. Each gives its check, or says what is wrong with its own value. */
import { ok, refuse, type Result } from "./result.ts";
import { countCodePoints } from "./code-points.ts";
import { FORMATS } from "./json-schema-formats.ts";
import { canonical, fail, isObject, spend, type Check, type Json, type Run } from "./json-schema-node.ts";
import { compileSchemaPattern } from "./json-schema-pattern.ts";

type Compile = (given: Json) => Result<Check, string>;

const TYPES = ["null", "boolean", "integer", "number", "string", "array", "object"];
const MAX_NAMES = 1_000;

/** Of a schema's own values, whose size is bounded already. */
const unbounded = (): Run => ({ stepsLeft: Infinity, depth: 0, quiet: 1, faults: [] });

export const CHECKS: Readonly<Record<string, Compile>> = {
  type(given) {
    // Each once: a step looks at all of them.
    const wanted = [...new Set(Array.isArray(given) ? given : [given])];
    if (wanted.length === 0 || !wanted.every((name) => TYPES.includes(name as string))) {
      return refuse(`must be one or more of ${TYPES.join(", ")}`);
    }
    const message = `must be ${wanted.join(" or ")}`;
    return ok((value, at, run) => wanted.some((name) => isOfType(value, name as string)) || fail(run, at, message));
  },
  enum(given) {
    if (!Array.isArray(given) || given.length === 0) return refuse("must be a list of values");
    const known = new Set(given.map((one) => canonical(one, unbounded())));
    return ok((value, at, run) => known.has(canonical(value, run)) || fail(run, at, "is none of the values allowed"));
  },
  const(given) {
    const known = canonical(given, unbounded());
    return ok((value, at, run) => canonical(value, run) === known || fail(run, at, "is not the one value allowed"));
  },

  minimum: ofNumber((value, limit) => value >= limit, "at least"),
  maximum: ofNumber((value, limit) => value <= limit, "at most"),
  exclusiveMinimum: ofNumber((value, limit) => value > limit, "more than"),
  exclusiveMaximum: ofNumber((value, limit) => value < limit, "less than"),
  multipleOf(given) {
    if (typeof given !== "number" || given <= 0) return refuse("must be a number above 0");
    return ok((value, at, run) => {
      if (typeof value !== "number" || isMultiple(value, given)) return true;
      return fail(run, at, `must be a multiple of ${given}`);
    });
  },

  minLength: ofLength((value, run) => (typeof value === "string" ? codePoints(value, run) : null), "min", "characters"),
  maxLength: ofLength((value, run) => (typeof value === "string" ? codePoints(value, run) : null), "max", "characters"),
  pattern(given) {
    const pattern = typeof given === "string" ? compileSchemaPattern(given) : refuse("must be a text");
    if (!pattern.ok) return pattern;
    const { size, test } = pattern.value;
    return ok((value, at, run) => {
      if (typeof value !== "string") return true;
      spend(run, patternSteps(size, value));
      return test(value) || fail(run, at, "does not match the pattern");
    });
  },
  format(given) {
    const isFormat = FORMATS.get(given as string);
    if (!isFormat) return refuse(`must be one of ${[...FORMATS.keys()].join(", ")}: others are not checked`);
    return ok((value, at, run) => {
      if (typeof value !== "string") return true;
      spend(run, 1 + value.length / 16);
      return isFormat(value) || fail(run, at, `must be a ${String(given)}`);
    });
  },

  minItems: ofLength((value) => (Array.isArray(value) ? value.length : null), "min", "entries"),
  maxItems: ofLength((value) => (Array.isArray(value) ? value.length : null), "max", "entries"),
  uniqueItems(given) {
    if (typeof given !== "boolean") return refuse("must be true or false");
    return ok((value, at, run) => {
      if (!given || !Array.isArray(value)) return true;
      const seen = new Set(value.map((one) => canonical(one, run)));
      return seen.size === value.length || fail(run, at, "must have no entry twice");
    });
  },

  minProperties: ofLength((value, run) => (isObject(value) ? countKeys(value, run) : null), "min", "members"),
  maxProperties: ofLength((value, run) => (isObject(value) ? countKeys(value, run) : null), "max", "members"),
  required(given) {
    const names = toNames(given);
    if (names === null) return refuse("must be a list of names");
    return ok((value, at, run) => {
      if (!isObject(value)) return true;
      spend(run, names.length);
      let isWhole = true;
      for (const name of names) {
        if (!Object.hasOwn(value, name)) isWhole = fail(run, { parent: at, key: name }, "is required");
      }
      return isWhole;
    });
  },
  dependentRequired(given) {
    const names = isObject(given)
      ? Object.entries(given).map(([name, needed]) => [name, toNames(needed)] as const)
      : [];
    if (!isObject(given) || names.some(([, needed]) => needed === null))
      return refuse("must be lists of names, by name");
    return ok((value, at, run) => {
      if (!isObject(value)) return true;
      let isWhole = true;
      for (const [name, needed] of names) {
        spend(run, 1 + needed!.length);
        if (!Object.hasOwn(value, name)) continue;
        for (const other of needed!) {
          if (Object.hasOwn(value, other)) continue;
          isWhole = fail(run, { parent: at, key: other }, `is required beside ${name}`);
        }
      }
      return isWhole;
    });
  },
};

/** A test takes at most `size` times the text's length, of operations that are small beside a step. */
export function patternSteps(size: number, text: string): number {
  return 1 + (size * text.length) / 8;
}

function isOfType(value: Json, name: string): boolean {
  switch (name) {
    case "null":
      return value === null;
    case "array":
      return Array.isArray(value);
    case "object":
      return isObject(value);
    case "integer":
      return Number.isInteger(value);
    default:
      return typeof value === name;
  }
}

function ofNumber(holds: (value: number, limit: number) => boolean, bound: string): Compile {
  return (given) => {
    if (typeof given !== "number") return refuse("must be a number");
    const message = `must be ${bound} ${given}`;
    return ok((value, at, run) => typeof value !== "number" || holds(value, given) || fail(run, at, message));
  };
}

function ofLength(measure: (value: Json, run: Run) => number | null, end: "min" | "max", unit: string): Compile {
  return (given) => {
    if (!Number.isInteger(given) || (given as number) < 0) return refuse("must be a whole number, 0 or more");
    const limit = given as number;
    const message = `must have at ${end === "min" ? "least" : "most"} ${limit} ${unit}`;
    return ok((value, at, run) => {
      const length = measure(value, run);
      if (length === null || (end === "min" ? length >= limit : length <= limit)) return true;
      return fail(run, at, message);
    });
  };
}

/** Characters as JSON Schema counts them. */
function codePoints(text: string, run: Run): number {
  spend(run, text.length / 16);
  return countCodePoints(text);
}

function countKeys(value: object, run: Run): number {
  const { length } = Object.keys(value);
  spend(run, length);
  return length;
}

/** Decimal fractions are not exact: 0.3 is a multiple of 0.1. */
function isMultiple(value: number, of: number): boolean {
  const quotient = value / of;
  if (!Number.isFinite(quotient)) return value % of === 0;
  const nearest = Math.round(quotient);
  return Math.abs(quotient - nearest) <= 1e-9 * Math.max(1, Math.abs(nearest)) && (nearest !== 0 || value === 0);
}

function toNames(given: Json | undefined): string[] | null {
  const isList = Array.isArray(given) && given.length <= MAX_NAMES && given.every((name) => typeof name === "string");
  return isList ? (given as string[]) : null;
}
