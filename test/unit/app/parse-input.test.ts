import { describe, expect, test } from "vitest";
import { z } from "zod";
import { AppError } from "../../../src/app/app-error.ts";
import { notSupported, parseInput } from "../../../src/app/parse-input.ts";

const Input = z.strictObject({
  name: z.string(),
  size: z.int().min(1).optional(),
  filter: notSupported(),
  parts: z.array(z.strictObject({ type: z.string() })).optional(),
});

function refusal(value: unknown): AppError {
  try {
    parseInput(Input, value);
  } catch (error) {
    if (error instanceof AppError) return error;
  }
  throw new Error("was not refused");
}

function pathsOf({ errors }: AppError): string[] | undefined {
  return errors?.map(({ path }) => path);
}

test("good input comes back as the schema's type", () => {
  expect(parseInput(Input, { name: "a", size: 2 })).toEqual({ name: "a", size: 2 });
});

test.each<[z.ZodType, unknown, string]>([
  [z.string(), undefined, "is required"],
  [z.string(), 1, "must be a text"],
  [z.int(), 1.5, "must be a whole number"],
  [z.int(), "1", "must be a number"],
  [z.boolean(), "true", "must be true or false"],
  [z.array(z.string()), {}, "must be a list"],
  [z.strictObject({}), [], "must be an object"],
  [z.enum(["a", "b"]), "c", 'must be "a" or "b"'],
  [z.int().min(2), 1, "must be at least 2"],
  [z.int().max(2), 3, "must be at most 2"],
  [z.number().gt(2), 2, "must be more than 2"],
  [z.string().max(2), "abc", "must have at most 2 characters"],
  [z.array(z.int()).min(1), [], "must have at least 1 entries"],
  [z.string().regex(/^a/, "must begin with a"), "b", "must begin with a"],
])("a caller is told what to send: %#", (field, value, message) => {
  const schema = z.strictObject({ field });
  expect(() => parseInput(schema, { field: value })).toThrow(
    expect.objectContaining({ errors: [{ path: "field", message }] }),
  );
});

describe("bad input", () => {
  test("is refused with every bad field named, not only the first", () => {
    const error = refusal({ size: 0, parts: [{ type: "a" }, { type: 5 }] });
    expect(error.code).toBe("validation_failed");
    expect(pathsOf(error)?.toSorted()).toEqual(["name", "parts.1.type", "size"]);
  });

  test("that is no object is refused as a whole", () => {
    for (const value of [null, undefined, "text", 5, []]) {
      expect(refusal(value)).toMatchObject({ code: "validation_failed", errors: [{ path: "" }] });
    }
  });

  test("with unknown fields is refused with each of them named, where it stands", () => {
    const error = refusal({ name: "a", nmae: "b", sise: 1, parts: [{ type: "a", kind: "b" }] });
    expect(error.code).toBe("validation_failed");
    expect(pathsOf(error)?.toSorted()).toEqual(["nmae", "parts.0.kind", "sise"]);
  });

  test("with a field named __proto__ is refused, not passed over", () => {
    expect(refusal(JSON.parse('{"name":"a","__proto__":{"size":1}}'))).toMatchObject({
      code: "validation_failed",
      errors: [{ path: "__proto__" }],
    });
  });
});

describe("parts of the contract that are not built", () => {
  test("are refused as such when given, whatever they say; null says nothing", () => {
    for (const filter of [false, 0, "", {}, [], "x"]) {
      expect(refusal({ name: "a", filter })).toMatchObject({ code: "not_supported", errors: [{ path: "filter" }] });
    }
    expect(parseInput(Input, { name: "a", filter: null })).toMatchObject({ name: "a" });
  });

  test("outweigh what is merely wrong, which is named beside them", () => {
    const error = refusal({ name: 5, filter: "x" });
    expect(error.code).toBe("not_supported");
    expect(pathsOf(error)?.toSorted()).toEqual(["filter", "name"]);
  });
});
