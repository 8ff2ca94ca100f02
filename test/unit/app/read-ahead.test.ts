import fc from "fast-check";
import { expect, test } from "vitest";
import type { LoadedDelivery } from "../../../src/app/deliver/prepare.ts";
import { createReadAhead } from "../../../src/app/lane/read-ahead.ts";
import { READ_AHEAD_BYTES } from "../../../src/core/lane.ts";

/** Objects of bytes that tell their place, and what was read of them as `<ref>:<size>`. */
function store(...objects: [key: string, size: number][]) {
  const bytes = new Map(objects.map(([key, size], n) => [key, Uint8Array.from({ length: size }, (_, i) => i * 7 + n)]));
  const reads: string[] = [];
  const read = async (ref: string, size: number) => {
    reads.push(`${ref}:${size}`);
    const [key, offset] = ref.split("#");
    return bytes.get(key!)?.slice(Number(offset), Number(offset) + size) ?? null;
  };
  return { reads, read };
}

const rows = (...parts: [ref: string, size: number][]) =>
  parts.map(([payloadRef, payloadSize]) => ({ event: { payloadRef, payloadSize } })) as unknown as LoadedDelivery[];

const inTurn = async (
  read: (ref: string, size: number) => Promise<Uint8Array | null>,
  deliveries: LoadedDelivery[],
) => {
  const payloads = [];
  for (const { event } of deliveries) payloads.push(await read(event.payloadRef, event.payloadSize));
  return payloads;
};

test("the payloads of a batch are read at once, and each is its own bytes", async () => {
  const { reads, read } = store(["a", 60]);
  const deliveries = rows(["a#0", 10], ["a#10", 20], ["a#30", 30]);
  const payloads = await inTurn(createReadAhead(read, deliveries), deliveries);
  expect(reads).toEqual(["a#0:60"]);
  expect(payloads.map((bytes) => bytes!.buffer.byteLength)).toEqual([10, 20, 30]);
});

test("what lies in another object, or not right behind, is a read of its own", async () => {
  const { reads, read } = store(["a", 60], ["b", 10]);
  const deliveries = rows(["a#0", 10], ["b#0", 10], ["a#20", 10], ["a#40", 10], ["a#10", 10]);
  await inTurn(createReadAhead(read, deliveries), deliveries);
  expect(reads).toEqual(["a#0:10", "b#0:10", "a#20:10", "a#40:10", "a#10:10"]);
});

test("an empty payload is not taken for the one that begins where it does", async () => {
  const { read } = store(["a", 30]);
  for (const parts of [
    [10, 0, 20],
    [0, 30],
    [0, 0, 30],
  ]) {
    const offset = (n: number) => parts.slice(0, n).reduce((sum, size) => sum + size, 0);
    const deliveries = rows(
      ...parts.map((size, n): [string, number] => [`a#${offset(n)}`, size]),
      ["b#0", 0],
      [`a#${offset(parts.length - 1)}`, parts.at(-1)!],
    );
    expect(await inTurn(createReadAhead(readAll, deliveries), deliveries)).toEqual(await inTurn(readAll, deliveries));
  }
  async function readAll(ref: string, size: number) {
    return size === 0 ? new Uint8Array() : read(ref, size);
  }
});

test("no more is read ahead than there is room for; what is larger is read alone", async () => {
  const part = READ_AHEAD_BYTES / 64;
  const { reads, read } = store(["a", 200 * part]);
  const sizes = [40, 20, 10, 100, 30];
  const offset = (n: number) => sizes.slice(0, n).reduce((sum, size) => sum + size, 0) * part;
  const deliveries = rows(...sizes.map((size, n): [string, number] => [`a#${offset(n)}`, size * part]));
  await inTurn(createReadAhead(read, deliveries), deliveries);
  expect(reads).toEqual([
    `a#0:${60 * part}`,
    `a#${60 * part}:${10 * part}`,
    `a#${70 * part}:${100 * part}`,
    `a#${170 * part}:${30 * part}`,
  ]);
});

test("a read that fails is made anew, and what is missing is missing for the one that was asked for", async () => {
  const { reads, read } = store(["a", 20]);
  let isAway = true;
  const deliveries = rows(["a#0", 10], ["a#10", 10], ["gone#0", 5], ["gone#5", 5]);
  const readAhead = createReadAhead(
    (ref, size) => (isAway ? Promise.reject(new Error("away")) : read(ref, size)),
    deliveries,
  );
  await expect(readAhead("a#0", 10)).rejects.toThrow("away");
  isAway = false;
  expect(await inTurn(readAhead, deliveries)).toEqual([expect.any(Uint8Array), expect.any(Uint8Array), null, null]);
  expect(reads).toEqual(["a#0:20", "gone#0:10", "gone#5:5"]);
});

test("whatever lies where, and in whatever order it is asked for, everybody gets what a read of its own would give", async () => {
  const part = fc.record({
    key: fc.constantFrom("a", "b"),
    gap: fc.boolean(),
    size: fc.oneof(fc.constantFrom(0, 1), fc.integer({ min: 0, max: READ_AHEAD_BYTES })),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(part, { maxLength: 12 }), fc.array(fc.nat(20)), async (parts, skipped) => {
      const ends: Record<string, number> = { a: 0, b: 0 };
      const deliveries = rows(
        ...parts.map(({ key, gap, size }): [string, number] => {
          const start = ends[key]! + (gap ? 3 : 0);
          ends[key] = start + size;
          return [`${key}#${start}`, size];
        }),
      );
      const { read } = store(["a", ends["a"]!], ["b", ends["b"]!]);
      const asked = deliveries.filter((_, n) => !skipped.includes(n));
      const most: number[] = [];
      const counted = (ref: string, size: number) => (most.push(size), read(ref, size));
      expect(await inTurn(createReadAhead(counted, deliveries), asked)).toEqual(await inTurn(read, asked));
      expect(Math.max(0, ...most)).toBeLessThanOrEqual(READ_AHEAD_BYTES);
    }),
    { numRuns: 30 },
  );
});
