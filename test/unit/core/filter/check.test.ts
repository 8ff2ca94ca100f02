import { describe, expect, test } from "vitest";
import { checkFilter, compileFilter } from "../../../../src/core/filter/filter.ts";
import {
  MAX_FILTER_DEPTH,
  MAX_FILTER_ELEMENTS,
  MAX_FILTER_LENGTH,
  MAX_FILTER_NODES,
} from "../../../../src/core/filter/language.ts";
import { locate } from "../../../../src/core/filter/source.ts";

describe("what cannot work is refused when it is saved, at its place", () => {
  test.each([
    ["payload.total >", 15],
    ["payload.total > > 1", 16],
    ["(payload.total > 1", 18],
    ['payload.name == "x', 16],
    ["payload.a = 1", 10],
    ["payload.a & true", 10],
    ["payload..a == 1", 8],
    ["true true", 5],
    ["1 == 1 == ", 10],
    ["foo == 1", 0],
    ["true && foo.bar == 1", 8],
    ["payload.l.all(x, y == x)", 17],
    ["payload.l.all(x, true) && x == 1", 26],
    ["event.tpye == 'a'", 6],
    ["has(event.tpye)", 10],
    ["event.schema_version > '2'", 0],
    ["1 + 'a' == 2", 0],
    ["true && 1", 0],
    ["!1", 0],
    ["1 ? true : false", 0],
    ["frobnicate(payload.a)", 0],
    ["true || payload.a.frobnicate()", 18],
    ["payload.a.startsWith()", 10],
    ["has(payload)", 4],
    ["has(payload['a'])", 4],
    ["has(payload.l[0].a)", 4],
    ["payload.l.all(1, true)", 14],
    ["payload.l.all(x)", 10],
    ["b'a' == b'a'", 0],
    ["payload.a.matches('a+')", 10],
    ["timestamp(payload.a) > timestamp(payload.b)", 0],
    ["duration('1s') == duration('1s')", 0],
    ["type(1) == int", 0],
    ["bytes('a') == bytes('a')", 0],
    ["uint(1) == 1u", 0],
    ["payload.a.split(',') == ['a']", 10],
    ["payload.?a == 1", 8],
    ["cel.bind(x, 1, x == 1)", 0],
    ["payload.total + 1", 0],
    ["event.type", 0],
    ["[true]", 0],
    ["", 0],
    ["   ", 3],
    ["// nothing", 10],
    ["1e999 > 1.0", 0],
    ["payload.a == 99999999999999999999u", 13],
    ["payload.a == '\\ud800'", 14],
  ])("%j at %i", (source, position) => {
    const fault = checkFilter(source);
    expect(fault).toMatchObject({ position, message: expect.stringMatching(/^.{3,200}$/s) });
  });
});

test("a source is text as the ledger keeps and counts it: without NUL or half a pair of surrogates, but in escapes", () => {
  expect(checkFilter("payload.a == 'x\0y'")).toMatchObject({ position: 15 });
  expect(checkFilter("true // \0")).not.toBeNull();
  expect(checkFilter("payload.a == '\ud83d'")).not.toBeNull();
  expect(checkFilter("payload.a == '\ud83d\ude00'")).toBeNull();
  expect(checkFilter("payload.a == '\\u0000'")).toBeNull();
});

describe("the bounds", () => {
  const chain = (n: number) => Array(n).fill("true").join("||");
  test.each([
    ["characters", MAX_FILTER_LENGTH, (n: number) => `true //${"x".repeat(n - 7)}`],
    // Of n operands and one operator between each two.
    ["nodes", MAX_FILTER_NODES, (n: number) => `${n % 2 === 0 ? "!" : ""}${chain(Math.ceil(n / 2))}`],
    ["elements of a list", MAX_FILTER_ELEMENTS, (n: number) => `1 in [${Array(n).fill("1").join(",")}]`],
    [
      "entries of a map",
      MAX_FILTER_ELEMENTS / 2,
      (n: number) =>
        `1 in [${Array(2 * n)
          .fill("1")
          .join(",")}]`,
    ],
  ])("%s: %i and no more", (_, limit, sourceOf) => {
    expect(checkFilter(sourceOf(limit))).toBeNull();
    expect(checkFilter(sourceOf(limit + 1 + (limit % 2)))).not.toBeNull();
  });

  test("nesting, of whatever it is made", () => {
    const nested = (open: string, close: string, n: number) => open.repeat(n) + close.repeat(n);
    const wrap = (open: string, inside: string, close: string, n: number) => open.repeat(n) + inside + close.repeat(n);
    const forms: ((n: number) => string)[] = [
      (n) => wrap("(", "true", ")", n),
      (n) => `${nested("[", "]", n)} == []`,
      (n) => wrap("dyn(", "true", ")", n),
      (n) => wrap("true ? ", "true", " : false", n),
      (n) => `payload${".a".repeat(n)}`,
      (n) => `payload${"[0]".repeat(n)}`,
      (n) => wrap("payload.all(x, ", "true", ")", n),
      (n) => `${wrap('{"a": ', "1", "}", n)} == {}`,
    ];
    for (const form of forms) {
      expect(checkFilter(form(8)), form(8)).toBeNull();
      expect(checkFilter(form(MAX_FILTER_DEPTH + 1)), form(MAX_FILTER_DEPTH + 1)).not.toBeNull();
    }
  });

  test("a hundred alternatives in a row are not nesting, and neither are as many minus signs as fit", () => {
    expect(checkFilter(chain(150))).toBeNull();
    expect(checkFilter(`payload.a == ${"-".repeat(300)}1`)).toBeNull();
    expect(checkFilter(`${"!".repeat(2_000)}true`)).not.toBeNull();
  });
});

test("a filter's size is the number of its nodes", () => {
  const sizeOf = (source: string) => {
    const compiled = compileFilter(source);
    return compiled.ok && compiled.value.size;
  };
  expect(sizeOf("true")).toBe(1);
  expect(sizeOf("payload.a == 1")).toBe(4);
  expect(sizeOf('payload.l.exists(x, x in [1, 2]) && {"a": 1}.a == 1')).toBe(16);
});

test("line and column are as editors count them", () => {
  const source = "true &&\n  foo";
  expect(locate(source, 0)).toEqual({ offset: 0, line: 1, column: 1 });
  expect(locate(source, 7)).toEqual({ offset: 7, line: 1, column: 8 });
  expect(locate(source, 8)).toEqual({ offset: 8, line: 2, column: 1 });
  expect(locate(source, 10)).toEqual({ offset: 10, line: 2, column: 3 });
  expect(locate(source, 99)).toEqual({ offset: 99, line: 2, column: 6 });
});
