/** Payload bytes in R2. A reference is `<object key>#<offset>`: the events of one request share an object. */
export function createPayloadStore(bucket: R2Bucket) {
  return {
    async putPayloads(objectKey: string, bytes: Uint8Array): Promise<void> {
      await bucket.put(objectKey, bytes);
    },

    /** Null when the object is not there; throws when R2 cannot say. */
    async getPayload(ref: string, size: number): Promise<Uint8Array | null> {
      const [key, offset] = splitRef(ref);
      // R2 refuses an empty range, and there is nothing to read.
      if (size === 0) return new Uint8Array();
      const object = await bucket.get(key, { range: { offset, length: size } });
      return object ? new Uint8Array(await object.arrayBuffer()) : null;
    },

    async deletePayloads(objectKeys: string[]): Promise<void> {
      if (objectKeys.length > 0) await bucket.delete(objectKeys);
    },
  };
}

/** The object of a reference and the offset in it. */
export function splitRef(ref: string): [key: string, offset: number] {
  const hash = ref.lastIndexOf("#");
  return [ref.slice(0, hash), Number(ref.slice(hash + 1))];
}
