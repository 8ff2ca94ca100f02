import { countCodePoints } from "../code-points.ts";
import { toInt } from "./operators.ts";
import { Fault, spendCharacters, type Run, type Value } from "./values.ts";

/** One that is called as `name(value)`. */
type Conversion = (run: Run, value: Value, position: number) => Value | Fault;
/** One that is called as `text.name(…)`, on a string with strings. */
type Method = (run: Run, text: string, argument: string) => Value;

const NUMBER_TEXT = /^[+-]?(\d{1,40}(\.\d{0,40})?|\.\d{1,40})(e[+-]?\d{1,3})?$/i;

export const FUNCTIONS: Record<string, Conversion> = {
  size,
  dyn: (_, value) => value,
  int: (_, value, position) => {
    if (typeof value === "bigint") return value;
    if (typeof value === "number") {
      return Number.isFinite(value) ? toInt(BigInt(Math.trunc(value)), position) : new Fault("overflow", position);
    }
    if (typeof value !== "string") return new Fault("type_mismatch", position);
    const isInt = value.length <= 20 && /^[+-]?\d+$/.test(value);
    return isInt ? toInt(BigInt(value.replace("+", "")), position) : new Fault("invalid_conversion", position);
  },
  double: (_, value, position) => {
    if (typeof value === "bigint" || typeof value === "number") return Number(value);
    if (typeof value !== "string") return new Fault("type_mismatch", position);
    // Longer than the longest that the pattern takes, so that it does not look at what it cannot take.
    const isDouble = value.length <= 100 && NUMBER_TEXT.test(value);
    return isDouble ? Number(value) : new Fault("invalid_conversion", position);
  },
  string: (_, value, position) => {
    if (typeof value === "string") return value;
    const isScalar = typeof value === "bigint" || typeof value === "number" || typeof value === "boolean";
    return isScalar ? String(value) : new Fault("type_mismatch", position);
  },
  bool: (_, value, position) => {
    if (typeof value === "boolean") return value;
    if (typeof value !== "string") return new Fault("type_mismatch", position);
    if (["true", "True", "TRUE", "t", "1"].includes(value)) return true;
    return ["false", "False", "FALSE", "f", "0"].includes(value) ? false : new Fault("invalid_conversion", position);
  },
};

/** `value.size()`, which is `size(value)`, is the only one without an argument that takes more than strings. */
export const METHODS: Record<string, { arity: 0 | 1; call: Method }> = {
  startsWith: { arity: 1, call: startsWith },
  endsWith: {
    arity: 1,
    call: (run, text, end) => {
      spendCharacters(run, end.length);
      return text.endsWith(end);
    },
  },
  contains: { arity: 1, call: contains },
  lowerAscii: { arity: 0, call: (run, text) => mapAscii(run, text, (part) => part.toLowerCase()) },
  upperAscii: { arity: 0, call: (run, text) => mapAscii(run, text, (part) => part.toUpperCase()) },
};

function size(run: Run, value: Value, position: number): Value | Fault {
  if (Array.isArray(value)) return BigInt(value.length);
  if (value instanceof Map) return BigInt(value.size);
  if (typeof value !== "string") return new Fault("type_mismatch", position);
  spendCharacters(run, value.length);
  return BigInt(countCodePoints(value));
}

function startsWith(run: Run, text: string, start: string): boolean {
  spendCharacters(run, start.length);
  return text.startsWith(start);
}

/** Letters of other alphabets stay as they are. */
function mapAscii(run: Run, text: string, change: (part: string) => string): string {
  spendCharacters(run, 4 * text.length);
  return text.replace(/[\0-\x7f]+/g, change);
}

/** Up to here the runtime's own search is as good as any, however badly the two go together. */
const SMALL_SEARCH = 65_536;

/** In time that grows with the two together: what the runtime has takes their product at the worst. */
function contains(run: Run, text: string, part: string): boolean {
  spendCharacters(run, text.length + part.length);
  if (part.length > text.length) return false;
  if (part.length * text.length <= SMALL_SEARCH) return text.includes(part);
  spendCharacters(run, 8 * (text.length + part.length));
  return searchLinearly(text, part);
}

/** Knuth, Morris and Pratt: `borders[i]` is how much of the part's first `i + 1` characters is both their start and end. */
function searchLinearly(text: string, part: string): boolean {
  const borders = new Uint32Array(part.length);
  for (let i = 1, matched = 0; i < part.length; i++) {
    while (matched > 0 && part.charCodeAt(i) !== part.charCodeAt(matched)) matched = borders[matched - 1]!;
    if (part.charCodeAt(i) === part.charCodeAt(matched)) matched++;
    borders[i] = matched;
  }
  for (let i = 0, matched = 0; i < text.length; i++) {
    while (matched > 0 && text.charCodeAt(i) !== part.charCodeAt(matched)) matched = borders[matched - 1]!;
    if (text.charCodeAt(i) === part.charCodeAt(matched)) matched++;
    if (matched === part.length) return true;
  }
  return false;
}
