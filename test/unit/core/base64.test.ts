import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decodeBase64, decodeBase64Url, encodeBase64, encodeBase64Url } from "../../../src/core/base64.ts";
import { toHex } from "../../../src/core/hex.ts";

const bytes = fc.uint8Array({ maxLength: 200 });
const malformed = { ok: false, error: "malformed_base64" };

describe("base64", () => {
  test("bytes are written as Node writes them, and read back unchanged", () => {
    fc.assert(
      fc.property(bytes, (value) => {
        expect(encodeBase64(value)).toBe(Buffer.from(value).toString("base64"));
        expect(decodeBase64(encodeBase64(value))).toEqual({ ok: true, value });
        expect(encodeBase64Url(value)).toBe(Buffer.from(value).toString("base64url"));
        expect(decodeBase64Url(encodeBase64Url(value))).toEqual({ ok: true, value });
        expect(toHex(value)).toBe(Buffer.from(value).toString("hex"));
      }),
      { seed: 1 },
    );
  });

  test.each([24_575, 24_576, 24_577, 262_144, 1_000_000])("%i bytes go through whole", (length) => {
    const value = Uint8Array.from({ length }, (_, i) => (i * 31 + (i >> 8)) & 255);
    const text = encodeBase64(value);
    expect(text === Buffer.from(value).toString("base64")).toBe(true);
    const decoded = decodeBase64(text);
    expect(decoded.ok && Buffer.compare(decoded.value, value) === 0).toBe(true);
  });

  test("each value has one spelling: whatever decodes encodes to the same text", () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[A-D+/_\-=\n ]{0,8}$/), (text) => {
        const standard = decodeBase64(text);
        if (standard.ok) expect(encodeBase64(standard.value)).toBe(text);
        const url = decodeBase64Url(text);
        if (url.ok) expect(encodeBase64Url(url.value)).toBe(text);
      }),
      { seed: 1, numRuns: 2000 },
    );
  });

  test.each([
    "A",
    "AA",
    "AAA",
    "AA=",
    "AB==",
    "AAB=",
    "A===",
    "====",
    "=",
    "AA==AA==",
    "AAAA\n",
    " AAA",
    "AA-_",
    "é===",
  ])("%j is not standard base64", (text) => {
    expect(decodeBase64(text)).toEqual(malformed);
  });

  test.each(["A", "AB", "AA==", "AA+/", "AA A", "AAAAA"])("%j is not URL-safe base64", (text) => {
    expect(decodeBase64Url(text)).toEqual(malformed);
  });
});
