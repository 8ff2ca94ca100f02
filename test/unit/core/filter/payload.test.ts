import fc from "fast-check";
import { expect, test } from "vitest";
import { MAX_PAYLOAD_VALUES } from "../../../../src/core/filter/language.ts";
import { parsePayload } from "../../../../src/core/filter/payload.ts";
import { TOO_LARGE, type Value } from "../../../../src/core/filter/values.ts";
import { verdict } from "./support.ts";

const parse = (text: string) => parsePayload(new TextEncoder().encode(text));

/** What JSON.parse makes of the same, with integers that it keeps. */
function plain(value: unknown): Value {
  if (typeof value === "number") return Number.isInteger(value) && !Object.is(value, -0) ? BigInt(value) : value;
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value === "object" && value !== null) {
    return new Map(Object.entries(value).map(([key, member]) => [key, plain(member)]));
  }
  return value as Value;
}

test("it reads what JSON.parse reads, however it is spaced", () => {
  const space = fc.constantFrom(undefined, 1, "\t", " \n\r\t");
  fc.assert(
    fc.property(fc.json({ maxDepth: 6, noUnicodeString: false } as object), space, (text, indent) => {
      const value = JSON.parse(text);
      // As JSON.stringify writes numbers: 1e21 and -0 are its own, and what is longer it has rounded.
      fc.pre(!/[eE]|-0\b|\d{16}/.test(text.replace(/"(?:[^"\\]|\\.)*"/g, "")));
      expect(parse(JSON.stringify(value, null, indent))).toEqual(plain(value));
    }),
    { seed: 20_301, numRuns: 2_000 },
  );
});

test("any string comes out as JSON.parse has it: escapes, quotes, backslashes, lone surrogates", () => {
  const unit = fc.oneof(fc.constantFrom("\\", '"', "\\\\", '\\"', "\n", "\u0000", "\ud800", "ä", "😀"), fc.string());
  fc.assert(
    fc.property(fc.array(unit, { maxLength: 12 }), (units) => {
      const text = JSON.stringify(units.join(""));
      expect(parse(text)).toBe(JSON.parse(text));
      expect(parse(`[${text},{${text}:${text}}]`)).toEqual([
        JSON.parse(text),
        new Map([[JSON.parse(text), JSON.parse(text)]]),
      ]);
    }),
    { seed: 20_302, numRuns: 2_000 },
  );
  expect(parse('"\\/\\b\\f\\n\\r\\t\\u0041"')).toBe("/\b\f\n\r\tA");
});

test("whole numbers are exact up to 64 digits, and any other is the double nearest to it", () => {
  fc.assert(
    fc.property(fc.bigInt({ min: -(10n ** 64n) + 1n, max: 10n ** 64n - 1n }), (n) => {
      expect(parse(String(n))).toBe(n);
    }),
    { seed: 20_303, numRuns: 500 },
  );
  expect(parse("9007199254740993")).toBe(9007199254740993n);
  expect(parse("-9007199254740993")).toBe(-9007199254740993n);
  expect(parse("9".repeat(65))).toBe(1e65);
  for (const text of ["1.0", "1e2", "-0.5E-3", "1E+2", "1e999"]) expect(parse(text)).toBe(Number(text));
});

test("of a key given twice the last counts, and a key may be called anything", () => {
  expect(parse('{"a":1,"a":2,"\\u0061":3}')).toEqual(new Map([["a", 3n]]));
  expect(parse('{"__proto__":{"x":1},"":2}')).toEqual(
    new Map<string, Value>([
      ["__proto__", new Map([["x", 1n]])],
      ["", 2n],
    ]),
  );
});

test("it goes as deep as a payload may", () => {
  const depth = 129;
  expect(parse("[".repeat(depth) + "]".repeat(depth))).toBeInstanceOf(Array);
});

test("it stops at its number of values, containers among them, and not before", () => {
  const list = (length: number) => `[${Array(length).fill("1").join(",")}]`;
  expect(parse(list(MAX_PAYLOAD_VALUES - 1))).toHaveLength(MAX_PAYLOAD_VALUES - 1);
  expect(parse(list(MAX_PAYLOAD_VALUES))).toBe(TOO_LARGE);
  expect(parse(`[${Array(MAX_PAYLOAD_VALUES).fill("{}").join(",")}]`)).toBe(TOO_LARGE);
});

test("no payload of 256 KiB has too many values", () => {
  const densest = `[${Array(131_071).fill("1").join(",")}]`;
  expect(densest.length).toBeLessThanOrEqual(262_144);
  expect(parse(densest)).toHaveLength(131_071);
});

test("a payload that is the text too_large is not too large", () => {
  expect(verdict('payload == "too_large"', '"too_large"')).toBe("match");
});
