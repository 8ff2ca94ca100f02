import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { encodeBase64 } from "../../../src/core/base64.ts";
import { parseSecretsKeys, type SecretsKeys, unwrapSecret, wrapSecret } from "../../../src/core/secret-box.ts";

const setting = (id: string, fill: number) => `${id}:${encodeBase64(new Uint8Array(32).fill(fill))}`;
const iv = new Uint8Array(12).fill(9);
const context = "ten_1/ep_1/sec_1";
const secret = Uint8Array.of(1, 2, 3, 4);
const plainBytes = fc.uint8Array({ maxLength: 64 });
const ivBytes = fc.uint8Array({ minLength: 12, maxLength: 12 });
const corrupt = { ok: false, error: "corrupt" };

function keysOf(text: string): SecretsKeys {
  const result = parseSecretsKeys(text);
  if (!result.ok) throw new Error(result.error);
  return result.value;
}

describe("wrapping", () => {
  const keys = keysOf(setting("k1", 1));

  test("a wrapped secret unwraps to itself, and shows only its key's id", async () => {
    await fc.assert(
      fc.asyncProperty(plainBytes, ivBytes, fc.string(), async (plain, nonce, where) => {
        const wrapped = await wrapSecret(keys, plain, nonce, where);
        expect(Array.from(wrapped.subarray(0, 4))).toEqual([1, 2, 0x6b, 0x31]);
        expect(wrapped).toHaveLength(4 + 12 + plain.length + 16);
        expect(await unwrapSecret(keys, wrapped, where)).toEqual({ ok: true, value: plain });
      }),
      { seed: 1, numRuns: 50 },
    );
  });

  test("a wrapped secret moved to another row does not unwrap", async () => {
    const wrapped = await wrapSecret(keys, secret, iv, context);
    expect(await unwrapSecret(keys, wrapped, "ten_1/ep_2/sec_1")).toEqual(corrupt);
    expect(await unwrapSecret(keys, wrapped, "")).toEqual(corrupt);
  });

  test("no byte can be changed, and no end cut off, without notice", async () => {
    const wrapped = await wrapSecret(keys, secret, iv, context);
    for (let i = 0; i < wrapped.length; i++) {
      const altered = wrapped.slice();
      altered[i] = (altered[i] ?? 0) ^ 1;
      expect((await unwrapSecret(keys, altered, context)).ok).toBe(false);
      expect((await unwrapSecret(keys, wrapped.slice(0, i), context)).ok).toBe(false);
    }
    expect(await unwrapSecret(keys, new Uint8Array(), context)).toEqual(corrupt);
  });
});

describe("changing keys", () => {
  test("the first key wraps, every key unwraps", async () => {
    const before = keysOf(setting("old", 1));
    const during = keysOf(`${setting("new", 2)},${setting("old", 1)}`);
    const after = keysOf(setting("new", 2));
    const wrappedBefore = await wrapSecret(before, secret, iv, context);
    const wrappedDuring = await wrapSecret(during, secret, iv, context);
    expect(await unwrapSecret(during, wrappedBefore, context)).toEqual({ ok: true, value: secret });
    expect(await unwrapSecret(after, wrappedDuring, context)).toEqual({ ok: true, value: secret });
    expect(await unwrapSecret(after, wrappedBefore, context)).toEqual({ ok: false, error: "unknown_key" });
    expect(await unwrapSecret(before, wrappedDuring, context)).toEqual({ ok: false, error: "unknown_key" });
  });

  test("another key under the same id does not unwrap", async () => {
    const wrapped = await wrapSecret(keysOf(setting("k", 1)), secret, iv, context);
    expect(await unwrapSecret(keysOf(setting("k", 2)), wrapped, context)).toEqual(corrupt);
  });
});

describe("the setting", () => {
  test("keys stand in the order given, white space around them set aside", () => {
    expect(keysOf(` ${setting("a", 1)} ,\n${setting("b-2_X", 2)}\n`).map((key) => key.id)).toEqual(["a", "b-2_X"]);
  });

  test.each([
    ["", "malformed_key"],
    [",", "malformed_key"],
    [`${setting("a", 1)},`, "malformed_key"],
    ["a", "malformed_key"],
    [encodeBase64(new Uint8Array(32)), "malformed_key"],
    [setting("", 1), "malformed_key"],
    [setting("a b", 1), "malformed_key"],
    [setting("a:b", 1), "malformed_key"],
    [setting("a".repeat(33), 1), "malformed_key"],
    [setting("a", 1).slice(0, -1), "malformed_key"],
    ["a:", "key_not_32_bytes"],
    [`a:${encodeBase64(new Uint8Array(31))}`, "key_not_32_bytes"],
    [`a:${encodeBase64(new Uint8Array(33))}`, "key_not_32_bytes"],
    [`${setting("a", 1)},${setting("a", 2)}`, "duplicate_key_id"],
  ])("%j is refused: %s", (text, error) => {
    expect(parseSecretsKeys(text)).toEqual({ ok: false, error });
  });
});
