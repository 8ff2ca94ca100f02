import { splitPayloadRef } from "../core/payload-ref.ts";

/** Payload bytes in R2. A reference is `<object key>#<offset>`: the events of one request share an object. */
export function createPayloadStore(bucket: R2Bucket) {
  return {
    async putPayloads(objectKey: string, bytes: Uint8Array): Promise<void> {
      await bucket.put(objectKey, bytes);
    },

    /** Null when the object is not there; throws when R2 cannot say. */
    async getPayload(ref: string, size: number): Promise<Uint8Array | null> {
      const [key, offset] = splitPayloadRef(ref);
      // R2 refuses an empty range, and there is nothing to read.
      if (size === 0) return new Uint8Array();
      const object = await bucket.get(key, { range: { offset, length: size } });
      return object ? new Uint8Array(await object.arrayBuffer()) : null;
    },

    /**
     * Writes the object anew with this range zeroed. False when somebody else has written it since it was read, and nothing
     * was written: whoever erased a neighbour must not find its bytes brought back. True when there is nothing to erase.
     */
    async zeroPayload(ref: string, size: number): Promise<boolean> {
      const [key, offset] = splitPayloadRef(ref);
      const object = size > 0 ? await bucket.get(key) : null;
      if (!object) return true;
      const bytes = new Uint8Array(await object.arrayBuffer());
      if (bytes.subarray(offset, offset + size).every((byte) => byte === 0)) return true;
      bytes.fill(0, offset, offset + size);
      return (await bucket.put(key, bytes, { onlyIf: { etagMatches: object.etag } })) !== null;
    },

    async deletePayloads(objectKeys: string[]): Promise<void> {
      if (objectKeys.length > 0) await bucket.delete(objectKeys);
    },
  };
}
