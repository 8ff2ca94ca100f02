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
