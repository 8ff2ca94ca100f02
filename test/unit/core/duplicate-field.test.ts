import fc from "fast-check";
import { expect, test } from "vitest";
import { findDuplicateField } from "../../../src/core/duplicate-field.ts";

const find = (json: string) => findDuplicateField(new TextEncoder().encode(json));

test.each([
  ['{"a":1,"b":2}', null],
  ['{"a":1,"a":1}', "a"],
  ['{"a":1,"\\u0061":2}', "a"],
  ['{"a":{"b":1},"b":{"b":1}}', null],
  ['{"a":{"b":1,"c":[],"b":2}}', "a.b"],
  ['{"a":[{"b":1},{"b":1,"b":1}]}', "a.1.b"],
  ['["a","a"]', null],
  ["1", null],
  ['{"":1,"":2}', ""],
])("%s: %j", (json, path) => expect(find(json)).toBe(path));

test("what JSON.stringify writes gives no field twice", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(find(JSON.stringify(value))).toBeNull();
    }),
  );
});
