import fc from "fast-check";

/** JSON as somebody might write it, with all that was known while it was written. */
export interface JsonText {
  text: string;
  /** How many containers are open at its deepest. */
  depth: number;
  kind: "object" | "array" | "scalar";
  /** Of the outermost container: keys as written, and values without the space around them. */
  items: { key: string | null; value: string }[];
}

const space = fc.string({ unit: fc.constantFrom(" ", "\t", "\n", "\r"), maxLength: 2 });
const number = fc.stringMatching(/^-?(0|[1-9][0-9]{0,40})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,4})?$/);
const letters = fc.oneof(
  fc.constantFrom("a", "}", "]", ",", ":", "\u007f", "\u2028", "\ufeff", "é", "😀", "\u{10ffff}"),
  fc.constantFrom('\\"', "\\\\", "\\/", "\\b", "\\f", "\\n", "\\r", "\\t"),
  fc.constantFrom("\\u0000", "\\u0022", "\\u005C", "\\uD800", "\\udfff", "\\ud83d\\ude00", "\\uFEFF"),
);
const string = fc.array(letters, { maxLength: 6 }).map((parts) => `"${parts.join("")}"`);
/** Few of them, so that they repeat. */
const key = fc.oneof(fc.constantFrom('"a"', '"\\u0061"', '""', '"__proto__"', '"payload"'), string);

const { value } = fc.letrec<{ value: JsonText; container: JsonText }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    fc.oneof(number, string, fc.constantFrom("true", "false", "null")).map(scalar),
    tie("container"),
  ),
  container: fc.oneof(
    fc.array(fc.tuple(space, tie("value"), space), { maxLength: 4 }).chain((elements) =>
      space.map((inside) =>
        containerOf(
          "array",
          inside,
          elements.map(([before, item, after]) => ({ key: null, item, text: before + item.text + after })),
        ),
      ),
    ),
    fc.array(fc.tuple(space, key, space, space, tie("value"), space), { maxLength: 4 }).chain((members) =>
      space.map((inside) =>
        containerOf(
          "object",
          inside,
          members.map(([before, name, a, b, item, after]) => ({
            key: name,
            item,
            text: `${before}${name}${a}:${b}${item.text}${after}`,
          })),
        ),
      ),
    ),
  ),
}));

/** Any value; white space, escapes, lone surrogates, numbers no double holds, repeated keys. */
export const jsonText = value;

function scalar(text: string): JsonText {
  return { text, depth: 0, kind: "scalar", items: [] };
}

function containerOf(
  kind: "object" | "array",
  inside: string,
  parts: { key: string | null; item: JsonText; text: string }[],
): JsonText {
  const body = parts.length === 0 ? inside : parts.map(({ text }) => text).join(",");
  return {
    text: kind === "object" ? `{${body}}` : `[${body}]`,
    depth: 1 + Math.max(0, ...parts.map(({ item }) => item.depth)),
    kind,
    items: parts.map(({ key: name, item }) => ({ key: name, value: item.text })),
  };
}

/** One place of the bytes changed: cut out, put in, or another in its stead. */
export const byteChange = fc.tuple(
  fc.nat(),
  fc.nat(2),
  fc.oneof(
    fc.constantFrom<number[][]>(
      [],
      [0x22],
      [0x5c],
      [0x7b],
      [0x5d],
      [0x2c],
      [0x30],
      [0x20],
      [0xef, 0xbb, 0xbf],
      [0xed, 0xa0, 0x80],
    ),
    fc.uint8Array({ maxLength: 2 }).map((bytes) => [...bytes]),
  ),
);

export function changeBytes(bytes: Uint8Array, [place, removed, added]: [number, number, number[]]): Uint8Array {
  const changed = [...bytes];
  changed.splice(place % (bytes.length + 1), removed, ...added);
  return Uint8Array.from(changed);
}

/** What the platform's own decoder and parser say of the bytes; undefined when they refuse them. */
export function parseStrictly(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch {
    return undefined;
  }
}

export const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
