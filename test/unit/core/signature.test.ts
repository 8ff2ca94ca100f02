import { createHmac } from "node:crypto";
import fc from "fast-check";
import { Webhook } from "standardwebhooks";
import { describe, expect, test } from "vitest";
import { decodeSigningSecret, encodeSigningSecret, isSignedWith, signWebhook } from "../../../src/core/signature.ts";
import { parseSignatureHeaders } from "../../../src/core/signed-request.ts";
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

describe("verifying", () => {
  /** As a request with these headers is verified. */
  async function verify(vector: (typeof vectors.v1)[number], changes: Record<string, string> = {}): Promise<boolean> {
    const given = { id: vector.id, timestamp: String(vector.timestamp), signature: vector.signature, ...changes };
    const headers = parseSignatureHeaders(given);
    if (!headers.ok) return false;
    const { id, timestampSeconds, signatures } = headers.value;
    const bytes = changes["body"] === undefined ? bodyOf(vector) : new TextEncoder().encode(changes["body"]);
    return isSignedWith(decoded(changes["secret"] ?? vector.secret), { id, timestampSeconds, body: bytes }, signatures);
  }

  test.each(vectors.v1)("the published signature of $id at $timestamp holds: $signature", async (vector) => {
    expect(await verify(vector)).toBe(true);
    expect(
      await verify(vector, { signature: `v1,${"A".repeat(43)}= ${vectors.v1a[0]!.signature} ${vector.signature}` }),
    ).toBe(true);
  });

  test.each(vectors.v1)("it holds for nothing else: $signature", async (vector) => {
    const changes: Record<string, string>[] = [
      { id: `${vector.id}x` },
      { timestamp: String(vector.timestamp + 1) },
      { body: `${vector.body ?? ""} ` },
      { secret: encodeSigningSecret(new Uint8Array(32)) },
      { signature: vector.signature.replace("v1,", "v1a,") },
      { signature: vector.signature.replace("v1,", "v2,") },
      { signature: `${vector.signature},` },
    ];
    for (const change of changes) expect(await verify(vector, change)).toBe(false);
  });

  test.each(vectors.v1a)("a signature of another scheme is no signature: $signature", async ({ signature }) => {
    expect(await verify(vectors.v1[0]!, { signature })).toBe(false);
  });

  test("one of the signatures must be the key's own, over the very bytes", async () => {
    const flipped = (bytes: Uint8Array, at: number) =>
      bytes.map((byte, i) => (i === at % Math.max(bytes.length, 1) ? byte ^ 1 : byte));
    const own = fc.record({
      key,
      body: fc.uint8Array({ minLength: 1, maxLength: 100 }),
      at: fc.nat(),
      place: fc.nat(3),
    });
    await fc.assert(
      fc.asyncProperty(own, async ({ key: one, body: bytes, at, place }) => {
        const message = { id: "msg_1", timestampSeconds: 1614265330, body: bytes };
        const mac = Buffer.from((await signWebhook([one], message)).slice(3), "base64");
        const signatures = Array.from({ length: 4 }, (_, n) => (n === place ? mac : new Uint8Array(32)));
        expect(await isSignedWith(one, message, signatures)).toBe(true);
        expect(await isSignedWith(flipped(one, at), message, signatures)).toBe(false);
        expect(await isSignedWith(one, { ...message, body: flipped(bytes, at) }, signatures)).toBe(false);
        expect(await isSignedWith(one, message, [flipped(mac, at)])).toBe(false);
      }),
      { seed: 4, numRuns: 50 },
    );
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
