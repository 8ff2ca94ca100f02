import fc from "fast-check";
import { expect, test } from "vitest";
import { encodeBase64Url } from "../../../src/core/base64.ts";
import { encodeCursor, parseCursor } from "../../../src/core/cursor.ts";

const malformed = { ok: false, error: "malformed_cursor" };
const cursorOf = (json: string) => encodeBase64Url(new TextEncoder().encode(json));

test("a cursor reads back as the parts it was made of", () => {
  const text = fc.string({ unit: "grapheme", maxLength: 20 });
  fc.assert(
    fc.property(text, fc.maxSafeInteger(), text, (a, b, c) => {
      const cursor = encodeCursor([a, b, c]);
      expect(cursor).toMatch(/^[A-Za-z0-9_-]*$/);
      fc.pre(cursor.length <= 512);
      expect(parseCursor(cursor, ["string", "number", "string"])).toEqual({ ok: true, value: [a, b, c] });
    }),
    { seed: 1 },
  );
});

test("a cursor of one list does not fit another's", () => {
  const cursor = encodeCursor([1, "evt_x"]);
  expect(parseCursor(cursor, ["number", "string"]).ok).toBe(true);
  expect(parseCursor(cursor, ["string", "number"])).toEqual(malformed);
  expect(parseCursor(cursor, ["number"])).toEqual(malformed);
  expect(parseCursor(cursor, ["number", "string", "string"])).toEqual(malformed);
});

test("a text that is no cursor is refused, and nothing throws", () => {
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: "binary" }), fc.base64String(), fc.json().map(cursorOf)), (text) => {
      const parsed = parseCursor(text, ["number", "string"]);
      if (parsed.ok) expect(parsed.value).toEqual([expect.any(Number), expect.any(String)]);
    }),
    { seed: 1, numRuns: 500 },
  );
});

test.each([
  ["", "nothing"],
  ["!!", "another alphabet"],
  [cursorOf("[1,"), "JSON cut short"],
  [cursorOf('{"0":1,"1":"a","length":2}'), "an object"],
  [cursorOf('[1e999,"a"]'), "a number without end"],
  [cursorOf('[1.5,"a"]'), "a fraction"],
  [cursorOf('[9007199254740993,"a"]'), "a number past exactness"],
  [cursorOf("[1,null]"), "a null"],
  [cursorOf('[1,["a"]]'), "a list in the list"],
  [encodeBase64Url(Uint8Array.of(0x5b, 0x31, 0x2c, 0x22, 0xff, 0x22, 0x5d)), "bytes that are not UTF-8"],
  [cursorOf(`[1,"${"a".repeat(400)}"]`), "more than 512 characters"],
])("%j is refused: %s", (text) => {
  expect(parseCursor(text, ["number", "string"])).toEqual(malformed);
});
