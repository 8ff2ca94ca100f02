import { createPublicKey, verify } from "node:crypto";
import fc from "fast-check";
import { Webhook } from "standardwebhooks";
import { describe, expect, test } from "vitest";
import { webhookId } from "../../../src/core/ids.ts";
import { encodeSigningSecret, signWebhook } from "../../../src/core/signature.ts";
import { parseSignatureHeaders } from "../../../src/core/signed-request.ts";
import { encodePublicKey, publicKeyOf, signAsSource } from "../../../src/core/source-signature.ts";
import vectors from "./vectors/standard-webhooks.json" with { type: "json" };

const seed = fc.uint8Array({ minLength: 32, maxLength: 32 });
const [vector] = vectors.v1a;
if (!vector) throw new Error("no vector");
const published = Buffer.from(vector.secret_seed_then_public_base64, "base64");
const message = {
  id: vector.id,
  timestampSeconds: vector.timestamp,
  body: new TextEncoder().encode(vector.body),
};

/** By OpenSSL, which had no part in the signature. */
function isSigned(publicKey: Uint8Array, signed: Uint8Array, signature: string): boolean {
  const x = Buffer.from(publicKey).toString("base64url");
  const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
  expect(signature).toMatch(/^v1a,[A-Za-z0-9+/]{86}==$/);
  return verify(null, signed, key, Buffer.from(signature.slice("v1a,".length), "base64"));
}

test("the published signature of v1a is reproduced, to the byte", async () => {
  expect(await signAsSource([published.subarray(0, 32)], message)).toEqual([vector.signature]);
});

test("the published public key is that of the published private one, in the spelling whpk_", async () => {
  const publicKey = await publicKeyOf(published.subarray(0, 32));
  expect(Buffer.from(publicKey)).toEqual(published.subarray(32));
  expect(encodePublicKey(publicKey)).toBe(vector.public);
});

describe("a signature", () => {
  test("by any key over any bytes is verified by that key's public half, and by no other's", async () => {
    const body = fc.uint8Array({ maxLength: 100 });
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(seed, { minLength: 2, maxLength: 3 }), body, async (seeds, bytes) => {
        const signatures = await signAsSource(seeds, { ...message, body: bytes });
        const signed = Buffer.concat([Buffer.from(`${message.id}.${message.timestampSeconds}.`), bytes]);
        for (const [i, one] of seeds.entries()) {
          const publicKey = await publicKeyOf(one);
          expect(signatures.map((signature) => isSigned(publicKey, signed, signature))).toEqual(
            seeds.map((_, j) => i === j),
          );
          expect(isSigned(publicKey, Buffer.concat([signed, Buffer.from(" ")]), signatures[i]!)).toBe(false);
        }
      }),
      { seed: 15, numRuns: 50 },
    );
  });

  test("by no key is none", async () => {
    expect(await signAsSource([], message)).toEqual([]);
  });

  test.each([0, 31, 33, 64])(
    "by a key of %i bytes is refused: it would be another key than was meant",
    async (length) => {
      await expect(signAsSource([new Uint8Array(length)], message)).rejects.toThrow(RangeError);
      await expect(publicKeyOf(new Uint8Array(length))).rejects.toThrow(RangeError);
    },
  );

  test("beside those of v1 is passed over by a consumer's library, and by the relay's own parser", async () => {
    const secret = new Uint8Array(32).fill(7);
    const timestampSeconds = Math.floor(Date.now() / 1000);
    const now = { ...message, timestampSeconds };
    const symmetric = await signWebhook([secret], now);
    const signature = [symmetric, ...(await signAsSource([published.subarray(0, 32)], now))].join(" ");
    const headers = {
      "webhook-id": now.id,
      "webhook-timestamp": String(timestampSeconds),
      "webhook-signature": signature,
    };
    expect(() => new Webhook(encodeSigningSecret(secret)).verify(vector.body, headers)).not.toThrow();
    const parsed = parseSignatureHeaders({ id: now.id, timestamp: String(timestampSeconds), signature });
    expect(parsed).toMatchObject({ ok: true, value: { signatures: [expect.anything()] } });
  });
});

test("the signed id ends in that of the endpoint, so that one consumer cannot pass its request on to another", () => {
  const ref = { eventId: "evt_01k7xq3v5h8m2n4p6r8t0v2w4y", endpointId: "ep_0123456789abcdef" };
  expect(webhookId(ref).endsWith(ref.endpointId.slice("ep_".length))).toBe(true);
});
