import { expect, test } from "vitest";
import { describeFault, isStoreFault } from "../../../src/core/fault.ts";

test("a fault is told by its innermost cause, so that no query or parameter is printed", () => {
  const d1 = new Error("D1_ERROR: D1 DB is overloaded. Requests queued for too long.");
  const wrapped = new Error("Failed query: select ... params: secret", { cause: d1 });
  expect(describeFault(new Error("outer", { cause: wrapped }))).toBe(String(d1));
  expect(describeFault("text")).toBe("text");
});

test.each([
  ["D1_ERROR: Network connection lost.", true],
  ["D1 DB storage operation exceeded timeout which caused object to be reset.", true],
  ["Network connection lost.", true],
  ["get: We encountered an internal error. Please try again. (R2 10001)", true],
  ["D1_ERROR: UNIQUE constraint failed: source.tenant_id", false],
  ["D1_ERROR: no such column: x: SQLITE_ERROR", false],
  ["Cannot read properties of undefined", false],
])("%s: the caller may try again: %s", (message, expected) => {
  expect(isStoreFault(new Error("outer", { cause: new Error(message) }))).toBe(expected);
});
