import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { compileFilter, runFilter } from "../../../../src/core/filter/filter.ts";
import { CHARACTERS_PER_STEP, MAX_FILTER_STEPS } from "../../../../src/core/filter/language.ts";
import type { Value } from "../../../../src/core/filter/values.ts";
import { evaluate, verdict } from "./support.ts";

const list = (length: number, element = "1") => `[${Array(length).fill(element).join(",")}]`;
const KIB_256 = 262_144;

/** As large as a payload may be, in the forms that make most work. */
const FLAT = list(KIB_256 / 2 - 1);
const OBJECT = JSON.stringify(Object.fromEntries(Array.from({ length: 18_000 }, (_, n) => [`k${n}`, n])));
const TEXT = JSON.stringify("a".repeat(KIB_256 - 2));
const LINES = list(9_000, '{"a":1,"b":"cdef"}');
const NESTED = list(360, list(360));

describe("whatever a filter does with 256 KiB, it ends at its bound", () => {
  test.each<[filter: string, payload: string]>([
    ["payload.all(x, payload.all(y, x == y))", FLAT],
    ["payload.all(x, payload.all(y, payload.all(z, x == y && y == z)))", FLAT],
    ["payload.all(a, payload.all(b, payload.all(c, payload.all(d, payload.all(e, true)))))", FLAT],
    ["payload.exists(x, payload.exists(y, x != y))", FLAT],
    ["payload.all(x, !payload.exists_one(y, x == y))", FLAT],
    ["payload.map(x, payload.map(y, [x, y])) == []", FLAT],
    ["payload.filter(x, payload.filter(y, true) != []) == []", FLAT],
    ["payload.map(x, payload) == []", FLAT],
    ["payload.all(x, payload == payload)", FLAT],
    ["payload.all(x, 2 in payload || true)", FLAT],
    ["(payload + payload + payload + payload) == []", FLAT],
    ["payload.map(x, payload + payload) == []", FLAT],
    ["payload.all(k, payload.all(j, payload[k] == payload[j] || true))", OBJECT],
    ["payload.all(k, payload == payload)", OBJECT],
    ["payload.all(x, x.all(y, payload.all(z, z.all(w, w == y))))", NESTED],
    ["payload == payload && payload.all(x, payload == payload)", NESTED],
    ["payload.all(l, payload.all(m, l == m))", LINES],
    [`[1,2,3,4,5,6,7,8,9,10].all(x, payload.contains(payload + "b") || x > 0)`, TEXT],
    ["[1,2,3,4,5,6,7,8,9,10].all(x, payload.lowerAscii() == payload.upperAscii() || x > 0)", TEXT],
    ["[1,2,3,4,5,6,7,8,9,10].map(x, payload + payload + payload) == []", TEXT],
    [`[1,2,3,4,5,6,7,8,9,10].all(x, size(payload + payload) > x)`, TEXT],
    [`[1,2,3,4,5,6,7,8,9,10,11,12,13,14].all(x, payload <= payload && payload == payload)`, TEXT],
  ])("%s", (filter, payload) => {
    expect(payload.length).toBeLessThanOrEqual(KIB_256);
    const result = evaluate(filter, payload);
    expect(result).toMatchObject({ outcome: "failed", reason: "filter_work_exceeded", position: null });
    expect(result.steps).toBe(MAX_FILTER_STEPS);
  });
});

test("the keys of an object are taken one by one, as they are paid for", () => {
  let taken = 0;
  const keys = new Map<string, Value>(Array.from({ length: 1_000 }, (_, n) => [`k${n}`, null]));
  const whole = keys.keys.bind(keys);
  vi.spyOn(keys, "keys").mockImplementation(function* () {
    for (const key of whole()) {
      taken++;
      yield key;
    }
    return undefined;
  });
  const filter = compileFilter("payload.exists(key, true)");
  if (!filter.ok) throw new Error(filter.error.message);
  runFilter(filter.value, { event: () => new Map(), payload: () => keys }, MAX_FILTER_STEPS);
  expect(taken).toBe(1);
});

test.each(["null", "1", "[]"])(
  "a payload is read once, however often a filter asks: %s behind white space",
  (value) => {
    const decode = vi.spyOn(TextDecoder.prototype, "decode");
    try {
      evaluate("[1, 2, 3].all(x, payload == payload)", `${" ".repeat(1_000)}${value}`);
      expect(decode).toHaveBeenCalledTimes(1);
    } finally {
      decode.mockRestore();
    }
  },
);

test("doubling a text or a list again and again is paid for by its length, before it is made", () => {
  const doubled = (times: number) => {
    let filter = "payload";
    for (let n = 0; n < times; n++) filter = `[${filter}].map(x, x + x)[0]`;
    return filter;
  };
  // 2^15 times 32 characters are as many as there are steps for.
  expect(verdict(`size(${doubled(8)}) == 256 * 32`, JSON.stringify("x".repeat(32)))).toBe("match");
  expect(verdict(`size(${doubled(15)}) > 0`, JSON.stringify("x".repeat(320)))).toBe("filter_work_exceeded");
  expect(verdict(`size(${doubled(15)}) > 0`, list(32))).toBe("filter_work_exceeded");
});

test("a filter that is asked of an ordinary large payload has steps to spare", () => {
  expect(verdict("payload.exists(l, l.a == 2)", LINES)).toBe("no match");
  expect(verdict("payload.all(k, payload[k] >= 0)", list(10_000))).toBe("match");
  expect(verdict('payload.contains("b")', TEXT)).toBe("no match");
  expect(evaluate("payload.exists(l, l.a == 2)", LINES).steps).toBe(2 + 9_000 * 5);
});

test("with fewer steps than it takes a filter fails, and with as many it does not, wherever it stands then", () => {
  const filter = 'payload.l.exists(x, x.a == "c" || x.b in [1, 2]) && size(payload.s + "x") > 3';
  const payload = JSON.stringify({
    l: [
      { a: "b", b: 3 },
      { a: "d", b: 2 },
    ],
    s: "y".repeat(99),
  });
  const { steps, outcome } = evaluate(filter, payload);
  expect(outcome).toBe("match");
  for (let max = 0; max < steps; max++) expect(verdict(filter, payload, max)).toBe("filter_work_exceeded");
  expect(verdict(filter, payload, steps)).toBe("match");
});

test("steps are the same however often a filter runs", () => {
  const run = () => evaluate("payload.all(x, payload.exists(y, x == y))", "[1,2,3]").steps;
  expect(new Set(Array.from({ length: 5 }, run)).size).toBe(1);
});

describe("text", () => {
  const long = "a".repeat(10_000);
  test.each([
    ["payload == payload", 1],
    ["payload < payload", 1],
    ["payload + payload != payload", 2],
    ["size(payload) > 0", 1],
    ["payload.contains('b') || true", 1],
    ["payload.startsWith(payload)", 1],
    ["payload.endsWith(payload)", 1],
    ["payload.lowerAscii() != ''", 1],
    ["payload.upperAscii() != ''", 1],
    ["payload in [payload]", 1],
  ])("%s costs a step for each 32 characters", (filter, times) => {
    const least = (times * long.length) / CHARACTERS_PER_STEP;
    const short = evaluate(filter, '"a"').steps;
    expect(evaluate(filter, JSON.stringify(long)).steps).toBeGreaterThanOrEqual(Math.floor(short + least - 1));
  });

  test("contains finds what there is, in whichever of its two ways it looks", () => {
    const letters = fc.array(fc.constantFrom("a", "b"), { maxLength: 8 }).map((some) => some.join(""));
    const repeated = fc.tuple(letters, fc.integer({ min: 0, max: 120 })).map(([part, n]) => part.repeat(n));
    const texts = fc.array(repeated, { maxLength: 4 }).map((parts) => parts.join(""));
    fc.assert(
      fc.property(texts, texts, fc.nat(), fc.nat(), (text, other, from, length) => {
        const cut = text.slice(from % (text.length + 1), (from % (text.length + 1)) + (length % 600));
        for (const part of [cut, `${cut}a`, `b${cut}`, other]) {
          const found = verdict("payload.t.contains(payload.p)", JSON.stringify({ t: text, p: part }));
          expect(found).toBe(text.includes(part) ? "match" : "no match");
        }
      }),
      { seed: 20_304, numRuns: 500 },
    );
    const almost = `${"a".repeat(500)}b`;
    const text = "a".repeat(60_000);
    expect(verdict("payload.t.contains(payload.p)", JSON.stringify({ t: text, p: almost }))).toBe("no match");
    expect(verdict("payload.t.contains(payload.p)", JSON.stringify({ t: `${text}b`, p: almost }))).toBe("match");
  });
});
