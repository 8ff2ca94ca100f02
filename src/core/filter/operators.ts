import { compare, Fault, isEqual, isNumber, spend, spendCharacters, type Run, type Value } from "./values.ts";

export type BinaryOperator = "==" | "!=" | "<" | "<=" | ">" | ">=" | "in" | "+" | "-" | "*" | "/" | "%";
type Binary = (run: Run, a: Value, b: Value, position: number) => Value | Fault;

const MIN_INT = -(2n ** 63n);
const MAX_INT = 2n ** 63n - 1n;

export const BINARY_OPERATORS: Record<BinaryOperator, Binary> = {
  "==": (run, a, b) => isEqual(run, a, b),
  "!=": (run, a, b) => !isEqual(run, a, b),
  "<": ordered((order) => order < 0),
  "<=": ordered((order) => order <= 0),
  ">": ordered((order) => order > 0),
  ">=": ordered((order) => order >= 0),
  in: isIn,
  "+": (run, a, b, position) => {
    if (typeof a === "string" && typeof b === "string") {
      // Memory too: no string is longer than its steps allow.
      spendCharacters(run, a.length + b.length);
      return a + b;
    }
    if (Array.isArray(a) && Array.isArray(b)) {
      spend(run, a.length + b.length);
      return [...a, ...b];
    }
    return add(run, a, b, position);
  },
  "-": arithmetic(
    (a, b) => a - b,
    (a, b) => a - b,
  ),
  "*": arithmetic(
    (a, b) => a * b,
    (a, b) => a * b,
  ),
  "/": arithmetic(
    (a, b) => (b === 0n ? null : a / b),
    (a, b) => a / b,
  ),
  "%": (_, a, b, position) => {
    if (typeof a !== "bigint" || typeof b !== "bigint") return new Fault("type_mismatch", position);
    return b === 0n ? new Fault("division_by_zero", position) : a % b;
  },
};

const add = arithmetic(
  (a, b) => a + b,
  (a, b) => a + b,
);

export function negate(value: Value, position: number): Value | Fault {
  if (typeof value === "number") return -value;
  return typeof value === "bigint" ? toInt(-value, position) : new Fault("type_mismatch", position);
}

/** Ints are of 64 bits, whatever came of the calculation. */
export function toInt(value: bigint, position: number): bigint | Fault {
  return value < MIN_INT || value > MAX_INT ? new Fault("overflow", position) : value;
}

function ordered(holds: (order: number) => boolean): Binary {
  return (run, a, b, position) => {
    const order = compare(run, a, b);
    return order === null ? new Fault("type_mismatch", position) : holds(order);
  };
}

/** Of two ints an int, of an int and a double a double. `ofInts` gives null for a division by zero. */
function arithmetic(
  ofInts: (a: bigint, b: bigint) => bigint | null,
  ofDoubles: (a: number, b: number) => number,
): Binary {
  return (_, a, b, position) => {
    if (typeof a === "bigint" && typeof b === "bigint") {
      const result = ofInts(a, b);
      return result === null ? new Fault("division_by_zero", position) : toInt(result, position);
    }
    if (isNumber(a) && isNumber(b)) return ofDoubles(Number(a), Number(b));
    return new Fault("type_mismatch", position);
  };
}

function isIn(run: Run, a: Value, b: Value, position: number): Value | Fault {
  if (b instanceof Map) return typeof a === "string" && b.has(a);
  if (!Array.isArray(b)) return new Fault("type_mismatch", position);
  return b.some((element) => {
    spend(run, 1);
    return isEqual(run, a, element);
  });
}
