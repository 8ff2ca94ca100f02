import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { EVENT_KEY, parseIdempotencyKeyHeader, SOURCE_NAME } from "../../../src/core/grammar.ts";

const seed = { seed: 1 };
const key = fc.stringMatching(/^[\x21-\x7e]{1,256}$/);
const malformed = { ok: false, error: "malformed_idempotency_key" };

describe("names and keys", () => {
  test.each(["a", "0", "shop-1_eu", "hooklane-eu", "a".repeat(63)])("%s is a source name", (name) => {
    expect(SOURCE_NAME.test(name)).toBe(true);
  });

  test.each(["", "-a", "_a", "A", "a.b", "a b", "a\n", "é", "a".repeat(64), "hooklane"])(
    "%j is no source name",
    (name) => {
      expect(SOURCE_NAME.test(name)).toBe(false);
    },
  );

  test.each(["", " ", "a b", "a\t", "a\r\nx: y", "a\n", "\u007f", "é", "\u0000", "a".repeat(257)])(
    "%j is no key",
    (text) => {
      expect(EVENT_KEY.test(text)).toBe(false);
    },
  );
});

describe("the Idempotency-Key header", () => {
  test("a key that does not open with a quote is taken as it stands", () => {
    fc.assert(
      fc.property(key, (value) => {
        fc.pre(!value.startsWith('"'));
        expect(parseIdempotencyKeyHeader(` ${value}\t`)).toEqual({ ok: true, value });
      }),
      seed,
    );
  });

  test("every key can be sent quoted", () => {
    fc.assert(
      fc.property(key, (value) => {
        expect(parseIdempotencyKeyHeader(`"${value.replace(/["\\]/g, "\\$&")}"`)).toEqual({ ok: true, value });
      }),
      seed,
    );
  });

  test("whatever is accepted is a key", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: "binary" }), fc.stringMatching(/^"[a"\\ ]*"?$/)), (text) => {
        const parsed = parseIdempotencyKeyHeader(text);
        if (parsed.ok) expect(parsed.value).toMatch(EVENT_KEY);
      }),
      { ...seed, numRuns: 500 },
    );
  });

  test.each([
    "",
    "  ",
    '"',
    '""',
    '"a',
    '"a"b',
    '"a";p=1',
    '"a", "b"',
    "a, b",
    '"a b"',
    '"a\\b"',
    '"a\\"',
    '"é"',
    '"a""b"',
    `"${"a".repeat(257)}"`,
  ])("%j is refused", (value) => {
    expect(parseIdempotencyKeyHeader(value)).toEqual(malformed);
  });
});
