import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  createPrivateKey,
  createPublicKey,
  KeyObject,
  sign,
  timingSafeEqual,
} from "node:crypto";
import { concatBytes } from "../../../src/core/bytes.ts";

type Algorithm = { name: string; iv: Uint8Array; additionalData: Uint8Array };

const TAG_BYTES = 16;

/**
 * WebCrypto in one turn: the real one works in threads, and which of two answers comes first would be up to them. Only what
 * the relay uses.
 */
export const subtle = {
  digest: async (_algorithm: string, data: Uint8Array) => new Uint8Array(createHash("sha256").update(data).digest()),
  importKey: async (format: string, key: Uint8Array) =>
    format === "pkcs8" ? createPrivateKey({ key: key, format: "der", type: "pkcs8" }) : key,
  exportKey: async (_format: string, key: KeyObject) => createPublicKey(key).export({ format: "jwk" }),
  sign: async (_algorithm: unknown, key: Uint8Array | KeyObject, data: Uint8Array) =>
    key instanceof KeyObject ? new Uint8Array(sign(null, data, key)) : hmac(key, data),
  verify: async (_algorithm: unknown, key: Uint8Array, signature: Uint8Array, data: Uint8Array) => {
    const expected = hmac(key, data);
    return expected.length === signature.length && timingSafeEqual(expected, signature);
  },
  async encrypt({ iv, additionalData }: Algorithm, key: Uint8Array, data: Uint8Array) {
    const cipher = createCipheriv("aes-256-gcm", key, iv).setAAD(additionalData);
    return concatBytes([cipher.update(data), cipher.final(), cipher.getAuthTag()]);
  },
  async decrypt({ iv, additionalData }: Algorithm, key: Uint8Array, data: Uint8Array) {
    const decipher = createDecipheriv("aes-256-gcm", key, iv).setAAD(additionalData);
    decipher.setAuthTag(data.subarray(-TAG_BYTES));
    return concatBytes([decipher.update(data.subarray(0, -TAG_BYTES)), decipher.final()]);
  },
};

function hmac(key: Uint8Array, data: Uint8Array): Uint8Array {
  return new Uint8Array(createHmac("sha256", key).update(data).digest());
}
