import { CHARACTERS_PER_STEP } from "./language.ts";

/** An int is a bigint, a double a number, a map a Map: a member named `__proto__` is one like any other. */
export type Value = null | boolean | bigint | number | string | Value[] | Map<string, Value>;

/** Why an expression has no value. `absent` is what makes a filter not match; all others make it fail. */
export type FaultReason =
  | "absent"
  | "type_mismatch"
  | "overflow"
  | "division_by_zero"
  | "invalid_conversion"
  | "payload_too_large";

/** In place of a value, as CEL has it: `false && fault` is false, `true || fault` true. Never thrown, so it costs nothing. */
export class Fault {
  readonly reason: FaultReason;
  /** Where in the source, in characters from its start. */
  readonly position: number;

  constructor(reason: FaultReason, position: number) {
    this.reason = reason;
    this.position = position;
  }
}

/** What one evaluation knows, and what it may still spend. */
export interface Run {
  /** Steps left; `spend` throws OUT_OF_STEPS when there are none. */
  left: number;
  /** Made when it is first asked for. */
  event(): Map<string, Value>;
  /** Parsed when it is first asked for; undefined when it is not JSON. */
  payload(): Value | undefined | typeof TOO_LARGE;
  /** The variables of comprehensions, by depth. */
  variables: Value[];
}

/** In place of a payload that has more values than a filter may look at. No text, which a payload may be. */
export const TOO_LARGE = Symbol("too large");

/** Thrown, since no operator may go on. No Error: nobody wants its stack. */
export const OUT_OF_STEPS = Symbol("out of steps");

/** Pays before the work is done. */
export function spend(run: Run, steps: number): void {
  run.left -= steps;
  if (run.left < 0) throw OUT_OF_STEPS;
}

export function spendCharacters(run: Run, characters: number): void {
  if (characters >= CHARACTERS_PER_STEP) spend(run, Math.floor(characters / CHARACTERS_PER_STEP));
}

export function isNumber(value: Value): value is bigint | number {
  return typeof value === "bigint" || typeof value === "number";
}

/** Numbers are compared by what they are, 1 and 1.0 alike; values of different kinds are different. */
export function isEqual(run: Run, a: Value, b: Value): boolean {
  if (isNumber(a)) {
    // Without rounding: JavaScript compares a bigint with a number as mathematics does.
    // oxlint-disable-next-line eslint/eqeqeq
    return isNumber(b) && a == b;
  }
  if (typeof a === "string") {
    if (typeof b !== "string" || a.length !== b.length) return false;
    spendCharacters(run, a.length);
    return a === b;
  }
  if (Array.isArray(a)) {
    if (!Array.isArray(b) || a.length !== b.length) return false;
    return a.every((element, i) => {
      spend(run, 1);
      return isEqual(run, element, b[i]!);
    });
  }
  if (a instanceof Map) {
    if (!(b instanceof Map) || a.size !== b.size) return false;
    for (const [key, element] of a) {
      spend(run, 1);
      const other = b.get(key);
      if (other === undefined || !isEqual(run, element, other)) return false;
    }
    return true;
  }
  return a === b;
}

/** Below, above or at zero, as `a` is to `b`; NaN where one of them is, null where the two have no order. */
export function compare(run: Run, a: Value, b: Value): number | null {
  if (isNumber(a) && isNumber(b)) {
    if (a < b) return -1;
    if (a > b) return 1;
    // oxlint-disable-next-line eslint/eqeqeq
    return a == b ? 0 : NaN;
  }
  if (typeof a === "string" && typeof b === "string") {
    spendCharacters(run, Math.min(a.length, b.length));
    return compareCodePoints(a, b);
  }
  if (typeof a === "boolean" && typeof b === "boolean") return Number(a) - Number(b);
  return null;
}

/** UTF-16 has characters beyond U+FFFF before U+E000 to U+FFFF, and they come after. */
function compareCodePoints(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x !== y) return rank(x) - rank(y);
  }
  return a.length - b.length;
}

function rank(unit: number): number {
  if (unit >= 0xe000) return unit - 0x800;
  return unit >= 0xd800 ? unit + 0x2000 : unit;
}
