import { ok, refuse, type Result } from "./result.ts";

/** A half-open range of bytes. A value's span leaves out the white space around it. */
export type JsonSpan = { start: number; end: number };

/** A member of the outermost object (`key` spans the quoted key as written) or an element of the outermost array. */
export type JsonItem = { key: JsonSpan | null; value: JsonSpan };

type JsonKind = "object" | "array" | "scalar";
type JsonFault = { reason: "invalid_json" | "too_deep"; offset: number };

/** Deepest nesting of arrays and objects taken as a payload, so that whoever reads it next may recurse. */
export const MAX_JSON_DEPTH = 128;

const TAB = 0x09;
const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const SPACE = 0x20;
const QUOTE = 0x22;
const PLUS = 0x2b;
const COMMA = 0x2c;
const MINUS = 0x2d;
const POINT = 0x2e;
const ZERO = 0x30;
const COLON = 0x3a;
const UPPER_E = 0x45;
const OPEN_ARRAY = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_ARRAY = 0x5d;
const LOWER_E = 0x65;
const LOWER_U = 0x75;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

const ESCAPED_BYTES = latin1Bytes('"\\/bfnrt');
const TRUE = latin1Bytes("true");
const FALSE = latin1Bytes("false");
const NULL = latin1Bytes("null");

/**
 * Checks that `bytes` are one JSON text (RFC 8259 §2–§7, strictly: no BOM, no trailing comma, no comment) and shows
 * each member or element of the outermost container to `onItem`, in order. Values are only located, never decoded, so
 * that a payload can be passed on exactly as written. One pass, no recursion; bytes ≥ 0x80 inside strings are not
 * judged here (see `isUtf8`).
 *
 * `onItem` runs before the rest of the text is known to be good: what it gathered counts only if the answer is ok.
 * Offsets are bytes from the start of `bytes`; a text that ends too soon is at fault at its length.
 */
export function scanJson(
  bytes: Uint8Array,
  onItem: (item: JsonItem) => void,
  maxDepth: number = MAX_JSON_DEPTH,
): Result<JsonKind, JsonFault> {
  const closers: number[] = [];
  let kind: JsonKind = "scalar";
  let key: JsonSpan | null = null;
  let itemStart = 0;
  let at = 0;

  // Each turn reads one value, then closes every container that ends with it.
  for (;;) {
    at = skipSpace(bytes, at);
    if (closers.length === 1) itemStart = at;
    const first = bytes[at];
    let opened = false;
    if (first === OPEN_OBJECT || first === OPEN_ARRAY) {
      if (closers.length === maxDepth) return refuse({ reason: "too_deep", offset: at });
      if (closers.length === 0) kind = first === OPEN_OBJECT ? "object" : "array";
      closers.push(first === OPEN_OBJECT ? CLOSE_OBJECT : CLOSE_ARRAY);
      at = skipSpace(bytes, at + 1);
      opened = true;
    } else {
      at = endOfScalar(bytes, at);
      if (at < 0) return invalidAt(~at);
    }

    for (;;) {
      const closer = closers.at(-1);
      if (closer === undefined) {
        at = skipSpace(bytes, at);
        return at === bytes.length ? ok(kind) : invalidAt(at);
      }
      if (!opened) {
        if (closers.length === 1) onItem({ key, value: { start: itemStart, end: at } });
        at = skipSpace(bytes, at);
      }
      if (bytes[at] === closer) {
        closers.pop();
        at++;
        opened = false;
        continue;
      }
      if (!opened) {
        if (bytes[at] !== COMMA) return invalidAt(at);
        at = skipSpace(bytes, at + 1);
      }
      if (closer === CLOSE_OBJECT) {
        const keyStart = at;
        at = bytes[at] === QUOTE ? endOfString(bytes, at) : ~at;
        if (at < 0) return invalidAt(~at);
        if (closers.length === 1) key = { start: keyStart, end: at };
        at = skipSpace(bytes, at);
        if (bytes[at] !== COLON) return invalidAt(at);
        at++;
      }
      break;
    }
  }
}

/**
 * Decodes the small value or key at `span` of a text that `scanJson` accepted and `isUtf8` holds for. Never for a
 * payload: what `JSON.parse` has read cannot be written back byte for byte.
 */
export function readJson(bytes: Uint8Array, span: JsonSpan): unknown {
  return JSON.parse(new TextDecoder().decode(bytes.subarray(span.start, span.end)));
}

/** Whether the bytes are UTF-8 (WHATWG Encoding: no surrogates, no overlong forms, nothing past U+10FFFF). */
export function isUtf8(bytes: Uint8Array): boolean {
  try {
    new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}

/** Whether the bytes may stand as a value inside other JSON: UTF-8, no BOM, one JSON text, at most 128 deep. */
export function isJson(bytes: Uint8Array): boolean {
  return scanJson(bytes, () => {}).ok && isUtf8(bytes);
}

function invalidAt(offset: number): Result<never, JsonFault> {
  return refuse({ reason: "invalid_json", offset });
}

function skipSpace(bytes: Uint8Array, from: number): number {
  let at = from;
  while (at < bytes.length) {
    const byte = bytes[at];
    if (byte !== SPACE && byte !== LINE_FEED && byte !== CARRIAGE_RETURN && byte !== TAB) break;
    at++;
  }
  return at;
}

// The endOf… functions answer the position after what they read, or the complement (~, always negative) of the
// position at fault: a number costs nothing in a loop that runs for every byte.

function endOfScalar(bytes: Uint8Array, from: number): number {
  const first = bytes[from];
  if (first === QUOTE) return endOfString(bytes, from);
  if (first === MINUS || isDigit(first)) return endOfNumber(bytes, from);
  if (first === TRUE[0]) return endOfWord(bytes, from, TRUE);
  if (first === FALSE[0]) return endOfWord(bytes, from, FALSE);
  if (first === NULL[0]) return endOfWord(bytes, from, NULL);
  return ~from;
}

function endOfString(bytes: Uint8Array, from: number): number {
  let at = from + 1;
  while (at < bytes.length) {
    const byte = bytes[at] as number;
    if (byte === QUOTE) return at + 1;
    if (byte < SPACE) return ~at;
    if (byte === BACKSLASH) {
      at = endOfEscape(bytes, at);
      if (at < 0) return at;
    } else {
      at++;
    }
  }
  return ~at;
}

/** Lone surrogates (`\ud800`) are within the grammar (RFC 8259 §8.2), so they pass. */
function endOfEscape(bytes: Uint8Array, from: number): number {
  const letter = bytes[from + 1];
  if (letter !== LOWER_U) {
    return letter !== undefined && ESCAPED_BYTES.includes(letter) ? from + 2 : ~(from + 1);
  }
  for (let at = from + 2; at < from + 6; at++) {
    if (!isHexDigit(bytes[at])) return ~at;
  }
  return from + 6;
}

function endOfNumber(bytes: Uint8Array, from: number): number {
  let at = bytes[from] === MINUS ? from + 1 : from;
  at = bytes[at] === ZERO ? at + 1 : endOfDigits(bytes, at);
  if (at >= 0 && bytes[at] === POINT) at = endOfDigits(bytes, at + 1);
  if (at >= 0 && (bytes[at] === LOWER_E || bytes[at] === UPPER_E)) {
    const sign = bytes[at + 1];
    at = endOfDigits(bytes, sign === MINUS || sign === PLUS ? at + 2 : at + 1);
  }
  return at;
}

/** One digit or more. */
function endOfDigits(bytes: Uint8Array, from: number): number {
  let at = from;
  while (isDigit(bytes[at])) at++;
  return at === from ? ~at : at;
}

function endOfWord(bytes: Uint8Array, from: number, word: number[]): number {
  for (let index = 0; index < word.length; index++) {
    if (bytes[from + index] !== word[index]) return ~(from + index);
  }
  return from + word.length;
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39;
}

function isHexDigit(byte: number | undefined): boolean {
  if (byte === undefined) return false;
  const lower = byte | 0x20;
  return isDigit(byte) || (lower >= 0x61 && lower <= 0x66);
}

function latin1Bytes(text: string): number[] {
  return Array.from(text, (letter) => letter.charCodeAt(0));
}
