import { createHmac } from "node:crypto";
import fc from "fast-check";
import { Webhook } from "standardwebhooks";
import { describe, expect, test } from "vitest";
import { decodeSigningSecret, encodeSigningSecret, signWebhook } from "../../../src/core/signature.ts";
import vectors from "./vectors/standard-webhooks.json" with { type: "json" };

const key = fc.uint8Array({ minLength: 1, maxLength: 80 });
const body = fc.uint8Array({ maxLength: 100 });

function decoded(secret: string): Uint8Array {
  const result = decodeSigningSecret(secret);
  if (!result.ok) throw new Error(result.error);
  return result.value;
}

function bodyOf(vector: { body?: string; body_hex?: string }): Uint8Array {
  return vector.body_hex === undefined ? new TextEncoder().encode(vector.body) : Buffer.from(vector.body_hex, "hex");
}

describe("signatures", () => {
  test.each(vectors.v1)("the published signature of $id at $timestamp is reproduced: $signature", async (vector) => {
    const message = { id: vector.id, timestampSeconds: vector.timestamp, body: bodyOf(vector) };
    expect(await signWebhook([decoded(vector.secret)], message)).toBe(vector.signature);
  });

  test("any bytes are signed as they are, once for each key and in their order", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(key, { minLength: 1, maxLength: 3 }), body, async (keys, bytes) => {
        const signature = await signWebhook(keys, { id: "msg_1", timestampSeconds: 1614265330, body: bytes });
        const expected = keys.map(
          (one) => `v1,${createHmac("sha256", one).update("msg_1.1614265330.").update(bytes).digest("base64")}`,
        );
        expect(signature).toBe(expected.join(" "));
      }),
      { seed: 1, numRuns: 50 },
    );
  });

  test("a consumer's library accepts the delivery with either secret of a rotation, and with no other", async () => {
    const [oldKey, newKey, otherKey] = [1, 2, 3].map((fill) => new Uint8Array(32).fill(fill));
    if (!oldKey || !newKey || !otherKey) throw new Error("unreachable");
    const text = '{"amount":9007199254740993,"url":"a\\/b","name":"Zoë"}';
    const timestampSeconds = Math.floor(Date.now() / 1000);
    const message = { id: "msg_1", timestampSeconds, body: new TextEncoder().encode(text) };
    const headers = {
      "webhook-id": message.id,
      "webhook-timestamp": String(timestampSeconds),
      "webhook-signature": await signWebhook([newKey, oldKey], message),
    };
    for (const live of [oldKey, newKey]) {
      expect(() => new Webhook(encodeSigningSecret(live)).verify(text, headers)).not.toThrow();
    }
    expect(() => new Webhook(encodeSigningSecret(otherKey)).verify(text, headers)).toThrow();
    expect(() => new Webhook(encodeSigningSecret(newKey)).verify(`${text} `, headers)).toThrow();
  });
});

describe("signing secrets", () => {
  test("a secret reads back as its key", () => {
    fc.assert(
      fc.property(key, (bytes) => {
        expect(decoded(encodeSigningSecret(bytes))).toEqual(bytes);
      }),
      { seed: 1 },
    );
  });

  test.each([
    "",
    "whsec_",
    "whsec_A",
    "whsec_AAAA\n",
    "AAAA",
    "WHSEC_AAAA",
    "whsk_AAAA",
    "whsec_AA-_",
    "whsec_whsec_AAAA",
  ])("%j is no secret", (text) => {
    expect(decodeSigningSecret(text)).toEqual({ ok: false, error: "malformed_secret" });
  });
});
