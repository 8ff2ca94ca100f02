import { RE2JS } from "re2js";
import { ok, refuse, type Result } from "./result.ts";

/** Tests a text; `size` times its length is the most it can take. */
export interface Pattern {
  size: number;
  test(text: string): boolean;
}

const MAX_LENGTH = 256;
/** Instructions of the compiled program: repetitions are written out, so a short pattern may be a large one. */
const MAX_SIZE = 2_000;

/** What RE2 would take for something else than ECMAScript means by it. */
const NAMED_BACK_REFERENCE = /(?<!\\)(\\\\)*\\k</;

/**
 * Compiles a regular expression of a schema (ECMAScript syntax, found anywhere in a text) for an engine whose time is linear in
 * the text, whatever the pattern: what needs to look back or ahead is refused.
 */
export function compileSchemaPattern(source: string): Result<Pattern, string> {
  if (source.length > MAX_LENGTH) return refuse(`must have at most ${MAX_LENGTH} characters`);
  if (hasForeignGroup(source)) return refuse("must have no groups but (…), (?:…) and (?<name>…)");
  if (hasForeignEscape(source)) return refuse("has an escape or a class that ECMAScript does not have");
  if (NAMED_BACK_REFERENCE.test(source)) return refuse("must have no back reference");
  let compiled: RE2JS;
  try {
    compiled = RE2JS.compile(RE2JS.translateRegExp(source));
  } catch {
    return refuse("must be a regular expression that RE2 takes: without look-around and back references");
  }
  const size = compiled.programSize();
  if (size > MAX_SIZE) return refuse("is too large once its repetitions are written out");
  return ok({ size, test: (text) => compiled.test(text) });
}

/**
 * Whether a group is one that only RE2 knows, or that looks around. Flags are such: that all letters of a class be looked for in both
 * cases takes milliseconds to compile, and ECMAScript means nothing by `(?i)`.
 */
function hasForeignGroup(source: string): boolean {
  let isInClass = false;
  for (let i = 0; i < source.length; i++) {
    if (source[i] === "\\") i++;
    else if (isInClass) isInClass = source[i] !== "]";
    else if (source[i] === "[") isInClass = true;
    else if (source.startsWith("(?", i) && !/^(:|<(?![=!]))/.test(source.slice(i + 2, i + 4))) return true;
  }
  return false;
}

/** Of letters; what ECMAScript takes for the letter itself where it takes it at all, RE2 takes for the end of a text, or a quotation. */
const LETTER_ESCAPE = /^(?:[bBcdDfknrsStuvwWx]|[pP]\{)/;

/** `[[:alpha:]]` is a class of RE2's alone. */
const NAMED_CLASS = /\[[^\]]*\[:\^?[a-z]+:\]/;

function hasForeignEscape(source: string): boolean {
  if (NAMED_CLASS.test(source)) return true;
  for (let i = 0; i < source.length; i++) {
    if (source[i] !== "\\") continue;
    i++;
    if (/^[A-Za-z]/.test(source.slice(i, i + 1)) && !LETTER_ESCAPE.test(source.slice(i, i + 2))) return true;
  }
  return false;
}
