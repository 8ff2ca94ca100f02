import { Validator } from "@cfworker/json-schema";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compileJsonSchema } from "../../../src/core/json-schema.ts";
import type { Json } from "../../../src/core/json-schema-node.ts";
import { validateJson } from "../../../src/core/json-schema-validate.ts";

const SEED = { seed: 7_411, numRuns: 3_000 };

function check(schema: unknown, value: unknown) {
  const compiled = compileJsonSchema(schema);
  if (!compiled.ok) throw new Error(`${compiled.error.path}: ${compiled.error.message}`);
  return validateJson(compiled.value, value as Json, JSON.stringify(value).length);
}

const isValid = (schema: unknown, value: unknown) => check(schema, value).kind === "valid";

function faultOf(schema: unknown): string {
  const compiled = compileJsonSchema(schema);
  return compiled.ok ? "none" : compiled.error.path;
}

// Few names and few values, so that schemas and payloads meet.
const names = fc.constantFrom("a", "b", "ab");
const scalars = fc.constantFrom<unknown>(
  null,
  true,
  false,
  0,
  1,
  2,
  -1,
  1.5,
  10,
  "",
  "a",
  "ab",
  "aé",
  "😀",
  "2026-01-31",
);
const { value: values } = fc.letrec((tie) => ({
  value: fc.oneof({ depthSize: "small", withCrossShrink: true }, scalars, tie("list"), tie("object")),
  list: fc.array(tie("value"), { maxLength: 4 }),
  object: fc.dictionary(names, tie("value"), { maxKeys: 3 }),
}));
const counts = fc.integer({ min: 0, max: 3 });
const numbers = fc.constantFrom(-1, 0, 1, 1.5, 2);
const types = fc.constantFrom("null", "boolean", "integer", "number", "string", "array", "object");
const { schema: schemas } = fc.letrec((tie) => {
  const schema = tie("schema");
  const list = fc.array(schema, { minLength: 1, maxLength: 3 });
  const byName = fc.dictionary(names, schema, { maxKeys: 3 });
  const namesOnly = fc.uniqueArray(names, { maxLength: 2 });
  return {
    schema: fc.oneof(
      { depthSize: "small", withCrossShrink: true },
      fc.boolean(),
      fc.record(
        {
          type: fc.oneof(types, fc.uniqueArray(types, { minLength: 1, maxLength: 3 })),
          minimum: numbers,
          exclusiveMaximum: numbers,
          minLength: counts,
          maxLength: counts,
          pattern: fc.constantFrom("^a", "b$", "é", "^[a-c]+$", "\\d{4}"),
        },
        { requiredKeys: [] },
      ),
      fc.record(
        {
          enum: fc.array(values, { minLength: 1, maxLength: 3 }),
          const: values,
          minItems: counts,
          maxItems: counts,
          uniqueItems: fc.boolean(),
          minProperties: counts,
          maxProperties: counts,
          required: namesOnly,
          dependentRequired: fc.dictionary(names, namesOnly, { maxKeys: 2 }),
        },
        { requiredKeys: [] },
      ),
      fc.record(
        {
          properties: byName,
          patternProperties: fc.dictionary(fc.constantFrom("^a", "b$"), schema, { maxKeys: 2 }),
          additionalProperties: schema,
          propertyNames: schema,
          dependentSchemas: byName,
          prefixItems: list,
          items: schema,
        },
        { requiredKeys: [] },
      ),
      fc.record({ allOf: list, anyOf: list, oneOf: list, not: schema }, { requiredKeys: [] }),
      // oxlint-disable-next-line unicorn/no-thenable -- a keyword
      fc.record({ if: schema, then: schema, else: schema }),
      fc.record({ contains: schema, minContains: counts, maxContains: counts }),
      fc.constant({ $ref: "#/$defs/a" }),
      fc.constant({ $ref: "#/$defs/b" }),
    ),
  };
});
// What `a` refers to is `b` or below, so that nothing refers to itself at the same place for ever.
const flat = fc.record({ type: types, minimum: numbers }, { requiredKeys: [] });
const documents = fc
  .tuple(
    schemas.filter((schema) => typeof schema === "object"),
    flat,
    flat,
  )
  .map(([schema, a, b]) => ({ ...(schema as object), $defs: { a: { ...a, items: { $ref: "#" } }, b } }));

test("what is valid is what another validator calls valid", () => {
  let valid = 0;
  fc.assert(
    fc.property(documents, values, (given, payload) => {
      const [schema, value] = [JSON.parse(JSON.stringify(given)), JSON.parse(JSON.stringify(payload))];
      const reference = new Validator(structuredClone(schema), "2020-12").validate(value).valid;
      expect(isValid(schema, value)).toBe(reference);
      if (reference) valid++;
    }),
    SEED,
  );
  expect(valid).toBeGreaterThan(SEED.numRuns / 20);
  expect(valid).toBeLessThan((SEED.numRuns * 19) / 20);
});

describe("numbers", () => {
  test.each([
    [0.01, 4.35, true],
    [0.01, 4.355, false],
    [0.1, 0.3, true],
    [3, 7, false],
    [0.5, 1e308, true],
    [5, 0, true],
    [1e300, 1, false],
  ])("of %d, %d is a multiple: %s", (multipleOf, value, expected) => {
    expect(isValid({ multipleOf }, value)).toBe(expected);
  });

  test("1.0 is an integer and equal to 1", () => {
    expect(isValid({ type: "integer", const: 1 }, JSON.parse("1.0"))).toBe(true);
  });
});

describe("formats", () => {
  test.each([
    ["date-time", "2026-01-31T12:00:00Z", true],
    ["date-time", "2026-01-31 noon", false],
    ["date", "2024-02-29", true],
    ["date", "2023-02-29", false],
    ["date", "0000-01-01", true],
    ["date", "2026-13-01", false],
    ["email", "a@example.com", true],
    ["email", "a b@example.com", false],
    ["email", "a@", false],
    ["uri", "https://example.com/ü", true],
    ["uri", "/relative", false],
    ["uuid", "0189b0a1-7d57-4b1e-9c5f-0f0e0d0c0b0a", true],
    ["uuid", "0189b0a17d574b1e9c5f0f0e0d0c0b0a", false],
    ["uuid", 7, true],
  ])("%s: %j is one: %s", (format, value, expected) => {
    expect(isValid({ format }, value)).toBe(expected);
  });
});

test("each fault is told with the path to it, at most twenty of them", () => {
  const schema = {
    type: "object",
    required: ["id"],
    properties: { lines: { items: { properties: { price: { type: "number", minimum: 0 } } } } },
    additionalProperties: false,
  };
  expect(check(schema, { lines: [{ price: 1 }, { price: -1 }, { price: "2" }], more: 1 })).toEqual({
    kind: "invalid",
    faults: [
      { path: "lines.1.price", message: "must be at least 0" },
      { path: "lines.2.price", message: "must be number" },
      { path: "more", message: "is not allowed" },
      { path: "id", message: "is required" },
    ].toSorted((a, b) => (a.path === "id" ? -1 : b.path === "id" ? 1 : 0)),
  });
  expect(check({ type: "object" }, 7)).toEqual({ kind: "invalid", faults: [{ path: "", message: "must be object" }] });
  const many = check(
    { items: { type: "string" } },
    Array.from({ length: 100 }, (_, n) => n),
  );
  expect(many.kind === "invalid" && many.faults).toHaveLength(20);
});

test("what fails inside anyOf, oneOf, not or if is not told of by itself", () => {
  const schema = { anyOf: [{ type: "string" }, { properties: { a: { type: "number" } }, required: ["a"] }] };
  expect(check(schema, {})).toEqual({
    kind: "invalid",
    faults: [{ path: "", message: "fits none of the schemas of anyOf" }],
  });
});

test("members of a payload that objects have of themselves are members only where they are given", () => {
  expect(isValid({ required: ["toString", "constructor"] }, {})).toBe(false);
  expect(isValid({ required: ["__proto__"] }, JSON.parse('{"__proto__":1}'))).toBe(true);
  expect(isValid({ properties: JSON.parse('{"__proto__":{"type":"string"}}') }, JSON.parse('{"__proto__":1}'))).toBe(
    false,
  );
});

describe("a schema is refused, with the path to what is wrong with it, when", () => {
  const deep = (levels: number): unknown => (levels === 0 ? true : { items: deep(levels - 1) });
  test.each<[string, unknown, string]>([
    ["it is no schema", "object", "json_schema"],
    ["it is a list", [], "json_schema"],
    ["a keyword is unknown", { properties: { a: { maximun: 3 } } }, "json_schema.properties.a.maximun"],
    [
      "a keyword is known elsewhere and not checked here",
      { unevaluatedProperties: false },
      "json_schema.unevaluatedProperties",
    ],
    ["a type is unknown", { type: "text" }, "json_schema.type"],
    ["a type is a name of Object.prototype", { type: "constructor" }, "json_schema.type"],
    ["a keyword is a name of Object.prototype", { toString: 1 }, "json_schema.toString"],
    ["a bound is a text", { minimum: "3" }, "json_schema.minimum"],
    ["a format is not checked", { format: "hostname" }, "json_schema.format"],
    ["it refers to somewhere else", { $ref: "https://example.com/s" }, "json_schema.$ref"],
    ["it refers to nothing", { $ref: "#/$defs/a" }, "json_schema.$ref"],
    ["it refers to what is no schema", { $ref: "#/properties", properties: {} }, "json_schema.$ref"],
    ["it refers with a broken escape", { $ref: "#/%" }, "json_schema.$ref"],
    ["a pattern looks ahead", { pattern: "(?=a)b" }, "json_schema.pattern"],
    ["a pattern looks back", { pattern: "(?<=a)b" }, "json_schema.pattern"],
    ["a pattern has flags within", { pattern: "(?i)[a-z\u0100-\uffff]" }, "json_schema.pattern"],
    ["a pattern has flags for a group", { pattern: "\\((?i:a)" }, "json_schema.pattern"],
    ["a pattern ends as RE2 has it", { pattern: "a\\z" }, "json_schema.pattern"],
    ["a pattern quotes as RE2 has it", { pattern: "\\Qa\\E" }, "json_schema.pattern"],
    ["a pattern has a class of another language", { pattern: "^[[:alpha:]]$" }, "json_schema.pattern"],
    ["a pattern has a property without braces", { pattern: "\\pL" }, "json_schema.pattern"],
    ["a pattern names a group as Python does", { pattern: "(?P<x>a)" }, "json_schema.pattern"],
    ["a pattern refers back", { pattern: "(a)\\1" }, "json_schema.pattern"],
    ["a pattern refers back by name", { pattern: "(?<x>a)\\k<x>" }, "json_schema.pattern"],
    ["a pattern is malformed", { pattern: "(" }, "json_schema.pattern"],
    ["a pattern is long", { pattern: "a".repeat(257) }, "json_schema.pattern"],
    ["a pattern repeats itself into the thousands", { pattern: "((a{90}){90}){9}" }, "json_schema.pattern"],
    ["it is nested 33 deep", deep(33), `json_schema${".items".repeat(33)}`],
    ["items is a list", { items: [true] }, "json_schema.items"],
    ["else has no if", { else: true }, "json_schema.else"],
    ["it is of another dialect", { $schema: "http://json-schema.org/draft-04/schema#" }, "json_schema.$schema"],
  ])("%s", (_, schema, path) => {
    expect(faultOf(schema)).toBe(path);
  });

  test("it has more than a thousand schemas in it, or fifty patterns", () => {
    expect(faultOf({ anyOf: Array.from({ length: 1_000 }, () => true) })).toContain("json_schema.anyOf");
    expect(faultOf({ anyOf: Array.from({ length: 51 }, () => ({ pattern: "a" })) })).toContain("json_schema.anyOf");
  });
});

test("annotations, old names of definitions and members that begin with x- are taken", () => {
  const schema = {
    $schema: "http://json-schema.org/draft-07/schema#",
    $id: "https://example.com/order",
    title: "Order",
    "x-owner": { team: "orders" },
    definitions: { price: { type: "number" } },
    $ref: "#/definitions/price",
  };
  expect(faultOf(schema)).toBe("none");
  expect(isValid(schema, "1")).toBe(false);
});

test.each([
  ["(?:a|b)", "b", "c"],
  ["(?<name>a)b", "ab", "a"],
  ["[(?i)]x", "?x", "X"],
  ["\\(?i", "i", "I"],
  ["^[\\w\\-.]+\\.\\p{L}$", "a-b.c", "a-b.1"],
  ["\\\\A", "\\A", "A"],
])("a pattern may have a question mark where ECMAScript takes one: %s", (pattern, fits, doesNot) => {
  expect(isValid({ pattern }, fits)).toBe(true);
  expect(isValid({ pattern }, doesNot)).toBe(false);
});

describe("however hostile a schema or a payload, it ends: what takes too much work is no answer", () => {
  /** Each level of these asks for the next twice, all at one place of the payload: 2 to the power of 30. */
  const doubling = {
    $defs: Object.fromEntries(
      Array.from({ length: 30 }, (_, n) => {
        const next = { $ref: `#/$defs/d${n + 1}` };
        return [`d${n}`, n === 29 ? false : { anyOf: [next, next] }];
      }),
    ),
    $ref: "#/$defs/d0",
  };
  const many = Array.from({ length: 50_000 }, (_, n) => ({ n }));
  const anyOfConstants = (count: number) => ({ anyOf: Array.from({ length: count }, (_, n) => ({ const: n })) });
  test.each<[string, unknown, unknown]>([
    ["a schema that is itself", { $ref: "#" }, 1],
    [
      "two that are each other",
      { $defs: { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" } }, $ref: "#/$defs/a" },
      1,
    ],
    ["one that asks twice for the next, thirty times", doubling, 1],
    [
      "a thousand values for each of many entries",
      { items: { allOf: Array.from({ length: 900 }, () => ({ enum: [1, { n: 1 }] })) } },
      many,
    ],
    [
      "a large pattern over a long text",
      { anyOf: Array.from({ length: 40 }, () => ({ pattern: "^([ab]*a[ab]{900})+$" })) },
      "ab".repeat(100_000),
    ],
    ["values compared, of which each is empty", anyOfConstants(900), Array.from({ length: 20_000 }, () => [])],
    ["a name as long as a payload, compared", anyOfConstants(900), { ["n".repeat(250_000)]: 1 }],
  ])("%s", (_, schema, value) => {
    expect(check(schema, value)).toEqual({ kind: "too_much_work" });
  });

  test("a type that is named a thousand times is looked for once", () => {
    expect(check({ type: [...Array(1_000).fill("null"), "array"] }, "x")).toEqual({
      kind: "invalid",
      faults: [{ path: "", message: "must be null or array" }],
    });
  });

  test("unique entries, and patterns that make other engines hang, take no longer than their payload", () => {
    expect(isValid({ uniqueItems: true }, many)).toBe(true);
    expect(isValid({ uniqueItems: true }, [...many, { n: 0 }])).toBe(false);
    expect(isValid({ pattern: "^(a+)+$" }, `${"a".repeat(20_000)}b`)).toBe(false);
    expect(isValid({ pattern: "(x+x+)+y" }, "x".repeat(20_000))).toBe(false);
  });

  test("a schema that refers to itself below goes as deep as a payload may be", () => {
    const tree = { properties: { left: { $ref: "#" } }, additionalProperties: false };
    let value: unknown = {};
    for (let n = 0; n < 127; n++) value = { left: value };
    expect(isValid(tree, value)).toBe(true);
  });
});
