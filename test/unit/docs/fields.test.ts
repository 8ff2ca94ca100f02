import { expect, test } from "vitest";
import { openApiDocument } from "../../../src/http/openapi/document.ts";
import { readDoc } from "../../e2e/support/docs/markdown.ts";

test("the contract names every field of the API", () => {
  const { text } = readDoc("docs/contract.md");
  const fields = Object.entries(openApiDocument().components.schemas).flatMap(([name, { properties = {} }]) =>
    Object.keys(properties).map((field) => ({ name, field })),
  );
  expect(fields.length).toBeGreaterThan(100);
  expect(fields.filter(({ field }) => !new RegExp(`[\`"]${field}[\`"?]`).test(text))).toEqual([]);
});
