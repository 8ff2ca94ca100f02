import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isJson, isUtf8, readJson, scanJson, type JsonItem } from "../../../src/core/json-span.ts";

const SEED = { seed: 20261001 };

const encode = (text: string) => new TextEncoder().encode(text);
const decode = (bytes: Uint8Array) => new TextDecoder("utf-8", { fatal: false, ignoreBOM: true }).decode(bytes);

function scan(text: string, maxDepth?: number) {
  const bytes = encode(text);
  const items: JsonItem[] = [];
  const result = scanJson(bytes, (item) => items.push(item), maxDepth);
  const slice = (span: { start: number; end: number }) => decode(bytes.subarray(span.start, span.end));
  return {
    result,
    keys: items.map(({ key }) => (key === null ? null : slice(key))),
    values: items.map(({ value }) => slice(value)),
  };
}

function parses(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

const space = fc.string({ unit: fc.constantFrom(" ", "\t", "\n", "\r"), maxLength: 3 });

/** JSON text with white space wherever the grammar allows it, and some characters of strings escaped. */
const jsonText: fc.Arbitrary<string> = fc
  .tuple(fc.json({ maxDepth: 4 }), fc.array(space, { minLength: 1, maxLength: 5 }))
  .map(([json, spaces]) => {
    let turn = 0;
    const pad = () => spaces[turn++ % spaces.length] ?? "";
    const tokens = json.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^"{}[\],:\s]+/g) ?? [];
    return pad() + tokens.map((token) => token.replace(/e(?=\w*")/, "\\u0065") + pad()).join("");
  })
  .filter(parses);

const alphabet = [...' \t\n\r{}[]:,"\\/bfnrtu0123456789.eE+-alsx\u0000\u001f\u007f\u2028é😀\ufeff'];

describe("the grammar", () => {
  test.each(
    [
      ["0", "-0", "-0.0", "1.0", "10", "1e5", "1E+5", "1e-05", "0e0", "12345678901234567890123"],
      ["true", "false", "null", '""', "[]", "{}", " [ ] ", "\r\n{\t}\n", "[[],{}]", '{"":{"":[]}}'],
      ['"\\"\\\\\\/\\b\\f\\n\\r\\t"', '"\\u00e9\\uD83D\\uDE00\\uabCD"', '"\\ud800"', '"\u007f"'],
      ['"\u2028\u2029"', '"\ufeff"', '"é😀"', '{"a":1,"a":2}'],
    ].flat(),
  )("%j is JSON", (text) => {
    expect(parses(text)).toBe(true);
    expect(scan(text).result.ok).toBe(true);
  });

  test.each(
    [
      ["", " ", "01", "-", "-01", "+1", ".5", "1.", "1.e5", "1e", "1e+", "0x10", "1_0", "- 1"],
      ["NaN", "Infinity", "-Infinity", "undefined", "True", "tru", "truee", "nul", "fals3"],
      ['"', '"a', "'a'", '"\\"', '"\\x"', '"\\u12"', '"\\u12g4"', '"\\U0041"', '"\\u', '"\\'],
      ['"\n"', '"\t"', '"\u0000"', '"\u001f"', '"a" "b"', "1 2", "[1 2]", "[1,]", "[,1]", "[,]"],
      ["[", "]", "{", "}", "[}", "{]", "[1", "[1,", "[[]", "[]]", '{"a"}', '{"a":}', '{"a":1,}'],
      ['{"a":1', '{"a"', '{"a":', "{1:2}", "{a:1}", '{"a" 1}', '{"a"::1}', '{,"a":1}', '{"a",1}'],
      ['["a":1]', "[1]//", "/**/1", "\u00a01", "1\u00a0", "\u20281", "\ufeff1", "\f1", "\v1"],
    ].flat(),
  )("%j is not JSON", (text) => {
    expect(parses(text)).toBe(false);
    expect(scan(text).result).toMatchObject({ ok: false, error: { reason: "invalid_json" } });
  });

  test.each([
    ["[1,]", 3],
    ['{"é":1;', 7],
    ['"a', 2],
    ["[tru]", 4],
    ['["\\q"]', 3],
    ["1 x", 2],
    ["", 0],
  ])("the fault in %j is at byte %i", (text, offset) => {
    expect(scan(text).result).toEqual({ ok: false, error: { reason: "invalid_json", offset } });
  });

  test("any JSON text is accepted, whatever its white space", () => {
    fc.assert(
      fc.property(jsonText, (text) => {
        expect(scan(text).result.ok).toBe(true);
      }),
      SEED,
    );
  });

  test("a text with one character changed is accepted exactly when JSON.parse accepts it", () => {
    const change = fc.tuple(fc.nat(), fc.nat(2), fc.constantFrom("", ...alphabet));
    fc.assert(
      fc.property(jsonText, change, (text, [position, removed, added]) => {
        const letters = [...text];
        letters.splice(position % letters.length, removed, added);
        const changed = letters.join("").toWellFormed();
        expect(scan(changed).result.ok).toBe(parses(changed));
      }),
      { ...SEED, numRuns: 2000 },
    );
  });

  test("a run of JSON's own characters is accepted exactly when JSON.parse accepts it", () => {
    const soup = fc.string({ unit: fc.constantFrom(...alphabet), maxLength: 6 });
    fc.assert(
      fc.property(soup, (text) => {
        expect(scan(text).result.ok).toBe(parses(text));
      }),
      { ...SEED, numRuns: 5000 },
    );
  });

  test("no bytes make it throw, and a fault lies within the text", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        const result = scanJson(bytes, () => {});
        if (!result.ok) expect(result.error.offset).toBeLessThanOrEqual(bytes.length);
        isJson(bytes);
      }),
      SEED,
    );
  });
});

describe("spans", () => {
  test("members come in order, keys as written, values without the space around them", () => {
    const text = ' { "a" : 1.0 ,\n"\\u0061":\t[ 1 , {"b":2} ]\r, "":"x y" } ';
    expect(scan(text)).toEqual({
      result: { ok: true, value: "object" },
      keys: ['"a"', '"\\u0061"', '""'],
      values: ["1.0", '[ 1 , {"b":2} ]', '"x y"'],
    });
  });

  test("elements come in order and have no key", () => {
    expect(scan(' [ {"a":[1]} , [ ] ,-0 , null] ')).toEqual({
      result: { ok: true, value: "array" },
      keys: [null, null, null, null],
      values: ['{"a":[1]}', "[ ]", "-0", "null"],
    });
  });

  test.each([
    ["{ }", "object"],
    ["[ ]", "array"],
    [' "[1]" ', "scalar"],
  ])("%j has no items", (text, kind) => {
    expect(scan(text)).toEqual({ result: { ok: true, value: kind }, keys: [], values: [] });
  });

  test("each item's slice parses to what JSON.parse finds in that place", () => {
    const container = fc.oneof(
      fc.dictionary(fc.string({ unit: "grapheme" }), fc.jsonValue({ maxDepth: 3 })),
      fc.array(fc.jsonValue({ maxDepth: 3 })),
    );
    fc.assert(
      fc.property(container, fc.constantFrom(undefined, 2, "\t"), (value, indent) => {
        const bytes = encode(JSON.stringify(value, null, indent));
        const found: [unknown, unknown][] = [];
        scanJson(bytes, (item) => {
          const key = item.key === null ? String(found.length) : readJson(bytes, item.key);
          found.push([key, readJson(bytes, item.value)]);
        });
        expect(found).toEqual(Object.entries(JSON.parse(decode(bytes))));
      }),
      SEED,
    );
  });
});

describe("depth", () => {
  const nested = (depth: number) => "[".repeat(depth) + "]".repeat(depth);

  test("128 levels pass, the 129th is too deep", () => {
    expect(scan(nested(128)).result.ok).toBe(true);
    expect(scan(nested(129)).result).toEqual({
      ok: false,
      error: { reason: "too_deep", offset: 128 },
    });
    expect(scan('{"a":'.repeat(129)).result).toMatchObject({ error: { reason: "too_deep" } });
  });

  test("depth counts what is open, not what has been closed", () => {
    expect(scan(`[${Array(1000).fill("[[]]").join()}]`, 3).result.ok).toBe(true);
  });

  test("a megabyte of open brackets is refused at the limit", () => {
    const bytes = new Uint8Array(1024 * 1024).fill(0x5b);
    expect(scanJson(bytes, () => {})).toEqual({
      ok: false,
      error: { reason: "too_deep", offset: 128 },
    });
  });
});

describe("encoding", () => {
  test.each([
    ["a continuation byte alone", [0x80]],
    ["an overlong slash", [0xc0, 0xaf]],
    ["an encoded surrogate", [0xed, 0xa0, 0x80]],
    ["a character past U+10FFFF", [0xf4, 0x90, 0x80, 0x80]],
    ["a sequence cut short", [0xe2, 0x80]],
    ["Latin-1", [0xe9]],
  ])("%s is neither UTF-8 nor, within a string, JSON", (_name, bytes) => {
    expect(isUtf8(Uint8Array.from(bytes))).toBe(false);
    expect(isJson(Uint8Array.from([0x22, ...bytes, 0x22]))).toBe(false);
  });

  test("a text that begins with a BOM is UTF-8 but does not count as JSON", () => {
    expect(isUtf8(encode("\ufeff{}"))).toBe(true);
    expect(isJson(encode("\ufeff{}"))).toBe(false);
    expect(isJson(encode("{}"))).toBe(true);
    expect(isJson(new Uint8Array())).toBe(false);
  });
});
