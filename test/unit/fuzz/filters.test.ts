import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { checkFilter, compileFilter, runFilter } from "../../../src/core/filter/filter.ts";
import { createFilterInput } from "../../../src/core/filter/filter-input.ts";
import { MAX_FILTER_LENGTH, MAX_FILTER_STEPS } from "../../../src/core/filter/language.ts";
import { locate } from "../../../src/core/filter/source.ts";
import { EVENT } from "../core/filter/support.ts";

const PAYLOADS = [
  '{"a":{"b":[1,2.5,"x",null,true,{"c":9007199254740993}]},"s":"text","l":[]}',
  "[1,[2,[3]]]",
  '"text"',
  "null",
  "9007199254740993",
].map((text) => new TextEncoder().encode(text));

const TOKENS = [
  ..."()[]{}.,?:!-+*/%<>\"'`\\=&|;#@$~^ \n\t\0",
  "&&",
  "||",
  "==",
  "!=",
  "<=",
  ">=",
  " in ",
  "payload",
  "event",
  ".a",
  ".b",
  ".s",
  ".l",
  ".type",
  "has(",
  ".all(x, ",
  ".exists(x, ",
  ".exists_one(y, ",
  ".map(x, ",
  ".filter(x, ",
  "size(",
  ".size()",
  "int(",
  "double(",
  "string(",
  "bool(",
  "dyn(",
  ".startsWith(",
  ".contains(",
  ".matches(",
  "cel.bind(x, ",
  "timestamp(",
  "type(",
  "optional.of(",
  "x",
  "y",
  "1",
  "0",
  "-9223372036854775808",
  "99999999999999999999999999",
  "1u",
  "0xff",
  "1.5",
  "1e300",
  "1e999",
  '"x"',
  "'''x'''",
  'r"\\"',
  "b'\\377'",
  '"\\u12"',
  "true",
  "false",
  "null",
  "__proto__",
  "constructor",
  "prototype",
  "toString",
  "//",
  "😀",
  "\ud800",
];

/** Never throws, whatever the source; what compiles runs on anything within its steps, and says something. */
function tryFilter(source: string): boolean {
  const fault = checkFilter(source);
  const compiled = compileFilter(source);
  if (fault) {
    expect(fault.message).not.toBe("");
    expect(fault.position).toBeGreaterThanOrEqual(0);
    expect(fault.position).toBeLessThanOrEqual(source.length);
    expect(locate(source, fault.position).line).toBeGreaterThan(0);
  }
  if (!compiled.ok) {
    expect(fault).not.toBeNull();
    return false;
  }
  for (const payload of [...PAYLOADS, null]) {
    const result = runFilter(compiled.value, createFilterInput(EVENT, payload), 1_000);
    expect(result.steps).toBeLessThanOrEqual(1_000);
    expect(["match", "no_match", "failed"]).toContain(result.outcome);
    if (result.position !== null) expect(result.position).toBeLessThanOrEqual(source.length);
  }
  return fault === null;
}

describe("hostile sources", () => {
  test("any text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 200 }), (source) => void tryFilter(source)),
      { seed: 20_308, numRuns: 3_000 },
    );
  });

  test("tokens of the language in any order", () => {
    let savable = 0;
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...TOKENS), { maxLength: 30 }), (tokens) => {
        if (tryFilter(tokens.join(""))) savable++;
      }),
      { seed: 20_309, numRuns: 20_000 },
    );
    expect(savable).toBeGreaterThan(0);
  });

  const GOOD = [
    'payload.a.b.exists(x, x == 2.5) && event.type == "order.paid"',
    'has(payload.s) ? payload.s.startsWith("t") : size(payload.l) > 0',
    'payload.a.b.filter(x, x != null).map(x, [x, {"k": x}])[0][0] in [1, 2]',
    "!(int(string(1)) + 2 * 3 - 4 / 5 % 6 <= -7) || [1] + [2] == [1, 2]",
  ];
  test("good filters, each of them savable, with characters taken out, put in and turned round", () => {
    for (const source of GOOD) expect(tryFilter(source), source).toBe(true);
    const edits = fc.array(fc.tuple(fc.nat(), fc.nat({ max: 5 }), fc.constantFrom("", ...TOKENS)), {
      minLength: 1,
      maxLength: 4,
    });
    fc.assert(
      fc.property(fc.constantFrom(...GOOD), edits, (good, changes) => {
        const edited = changes.reduce((text, [at, length, token]) => {
          const from = at % (text.length + 1);
          return text.slice(0, from) + token + text.slice(from + length);
        }, good);
        tryFilter(edited);
      }),
      { seed: 20_310, numRuns: 10_000 },
    );
  });

  test.each(
    [
      "(",
      "[",
      "{",
      "!",
      "-",
      "payload.",
      "payload[",
      "{1:",
      "[[",
      "true?",
      "true?true:",
      "a(",
      "payload.all(x,",
      "payload.map(x,x,",
      "has(",
      "((((!",
      "1+",
      "1==",
      "''+",
      "//\n",
      "\\",
      '"',
      "'",
      "'''",
      'r"',
      "0x",
      "1.",
      "1e",
      "\u2028",
      "\ud83d",
      "cel.bind(x,1,",
      "[?",
      "payload.?",
    ].map((part) => [part]),
  )("%j as often as there is room, and a million times", (part) => {
    const often = part.repeat(Math.floor(MAX_FILTER_LENGTH / part.length));
    for (const source of [often, `${often.slice(0, -4)}true`, `true || ${often.slice(9)}`, part.repeat(1_000_000)]) {
      tryFilter(source);
    }
  });
});

test("whatever filters can be made of comprehensions and concatenations, none takes more than its steps", () => {
  const { tree } = fc.letrec<{ tree: string }>((tie) => {
    const list = tie("tree") as fc.Arbitrary<string>;
    return {
      tree: fc.oneof(
        { maxDepth: 6, depthSize: "large" },
        fc.constantFrom("payload", "[1, 2, 3]", "[payload, payload]"),
        fc.tuple(list, list).map(([a, b]) => `(${a} + ${b})`),
        fc.tuple(list, list).map(([a, b]) => `${a}.map(x, ${b})`),
        fc.tuple(list, list).map(([a, b]) => `${a}.map(x, ${b} == ${a}, ${b})`),
        fc.tuple(list, list).map(([a, b]) => `${a}.filter(y, ${b} != [])`),
        fc.tuple(list, list).map(([a, b]) => `[${a}, ${b}]`),
      ),
    };
  });
  const payload = new TextEncoder().encode(`[${Array.from({ length: 2_000 }, (_, n) => n).join(",")}]`);
  let ran = 0;
  fc.assert(
    fc.property(tree, (source) => {
      const compiled = compileFilter(`${source} == ${source}`);
      if (!compiled.ok) return;
      ran++;
      const result = runFilter(compiled.value, createFilterInput(EVENT, payload), MAX_FILTER_STEPS);
      expect(result.steps).toBeLessThanOrEqual(MAX_FILTER_STEPS);
    }),
    { seed: 20_311, numRuns: 300 },
  );
  expect(ran).toBeGreaterThan(100);
});
