import { describe, expect, test } from "vitest";
import { createPayloadReader } from "../../../src/app/deliver/payload-reader.ts";

const MIB = 1024 * 1024;

/** A store that counts its reads, and refuses while told to. */
function countingStore() {
  const reads: string[] = [];
  const refusing = new Set<string>();
  const read = async (ref: string, size: number) => {
    reads.push(`${ref}:${size}`);
    if (refusing.has(ref)) throw new Error("away");
    return ref === "missing" ? null : new TextEncoder().encode(ref);
  };
  return { reads, refusing, read: createPayloadReader(read) };
}

describe("one payload", () => {
  test("is read once for all deliveries that share it, also while the reading is under way", async () => {
    const { reads, read } = countingStore();
    const [first, second] = await Promise.all([read("a", 3), read("a", 3)]);
    expect(first).toEqual(new TextEncoder().encode("a"));
    expect(second).toBe(first);
    expect(await read("a", 3)).toBe(first);
    expect(reads).toEqual(["a:3"]);
  });

  test("that is missing is missing for all who share it", async () => {
    const { reads, read } = countingStore();
    expect(await Promise.all([read("missing", 3), read("missing", 3)])).toEqual([null, null]);
    expect(reads).toEqual(["missing:3"]);
  });

  test("whose reading fails, fails for those who waited and is read afresh for the next", async () => {
    const { reads, refusing, read } = countingStore();
    refusing.add("a");
    const failed = await Promise.allSettled([read("a", 3), read("a", 3)]);
    expect(failed.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    refusing.delete("a");
    expect(await read("a", 3)).toEqual(new TextEncoder().encode("a"));
    expect(reads).toEqual(["a:3", "a:3"]);
  });
});

describe("what is kept", () => {
  test("is the latest eight MiB: the oldest goes first", async () => {
    const { reads, read } = countingStore();
    for (const ref of ["a", "b", "c"]) await read(ref, 3 * MIB);
    await read("b", 3 * MIB);
    await read("c", 3 * MIB);
    expect(reads).toHaveLength(3);
    await read("a", 3 * MIB);
    expect(reads).toHaveLength(4);
  });

  test("is exactly eight MiB and not a byte more", async () => {
    const { reads, read } = countingStore();
    await read("a", 4 * MIB);
    await read("b", 4 * MIB);
    await read("a", 4 * MIB);
    expect(reads).toHaveLength(2);
    await read("c", 1);
    await read("b", 4 * MIB);
    expect(reads).toHaveLength(3);
    await read("a", 4 * MIB);
    expect(reads).toHaveLength(4);
  });

  test("is a single payload, however large, for as long as no other comes", async () => {
    const { reads, read } = countingStore();
    await read("large", 20 * MIB);
    await read("large", 20 * MIB);
    expect(reads).toHaveLength(1);
    await read("small", 1);
    await read("small", 1);
    expect(reads).toHaveLength(2);
    await read("large", 20 * MIB);
    expect(reads).toHaveLength(3);
  });

  test("does not count a payload whose reading failed", async () => {
    const { reads, refusing, read } = countingStore();
    refusing.add("b");
    await read("a", 4 * MIB);
    await read("b", 4 * MIB).catch(() => {});
    await read("c", 4 * MIB);
    await read("a", 4 * MIB);
    expect(reads).toHaveLength(3);
  });
});
