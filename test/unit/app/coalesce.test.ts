import fc from "fast-check";
import { expect, test } from "vitest";
import { coalesce } from "../../../src/app/deliver/coalesce.ts";

/** Work that is under way until the test says how it ends. */
function controlledWork() {
  const calls: { items: string[]; end: (error?: unknown) => void }[] = [];
  const work = (items: string[]) =>
    new Promise<void>((resolve, reject) => {
      calls.push({ items, end: (...error) => (error.length > 0 ? reject(error[0]) : resolve()) });
    });
  return { calls, work };
}

/** Lets everything that is ready run. */
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

async function turns(count: number): Promise<void> {
  for (let n = 0; n < count; n++) await Promise.resolve();
}

test("a lone item waits for nobody", () => {
  const { calls, work } = controlledWork();
  void coalesce(work, 10)("a");
  expect(calls.map(({ items }) => items)).toEqual([["a"]]);
});

test("what arrives while work is under way goes together in the next, in order, as many as may", async () => {
  const { calls, work } = controlledWork();
  const add = coalesce(work, 3);
  const all = Promise.all(["a", "b", "c", "d", "e"].map(add));
  await settled();
  expect(calls.map(({ items }) => items)).toEqual([["a"]]);
  calls[0]!.end();
  await settled();
  expect(calls.map(({ items }) => items)).toEqual([["a"], ["b", "c", "d"]]);
  calls[1]!.end();
  await settled();
  expect(calls.map(({ items }) => items)).toEqual([["a"], ["b", "c", "d"], ["e"]]);
  calls[2]!.end();
  await all;
});

test("an item is done when its own batch is, not before and not later", async () => {
  const { calls, work } = controlledWork();
  const add = coalesce(work, 1);
  const done: string[] = [];
  void add("a").then(() => done.push("a"));
  void add("b").then(() => done.push("b"));
  await settled();
  expect(done).toEqual([]);
  calls[0]!.end();
  await settled();
  expect(done).toEqual(["a"]);
});

test("a failure is that of its batch only, and what follows is done", async () => {
  const { calls, work } = controlledWork();
  const add = coalesce(work, 2);
  const results = Promise.allSettled(["a", "b", "c", "d"].map(add));
  calls[0]!.end();
  await settled();
  calls[1]!.end(new Error("refused"));
  await settled();
  calls[2]!.end();
  expect((await results).map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected", "fulfilled"]);
  const later = add("e");
  calls[3]!.end();
  await later;
});

test("a failure without a reason is a failure all the same", async () => {
  const { calls, work } = controlledWork();
  const added = coalesce(work, 2)("a");
  calls[0]!.end(undefined);
  await expect(added).rejects.toThrow("failed");
});

test("work that throws before it begins fails its batch and is tried for the next", async () => {
  let isBroken = true;
  const add = coalesce<string>(() => {
    if (isBroken) throw new Error("broken");
    return Promise.resolve();
  }, 2);
  await expect(add("a")).rejects.toThrow("broken");
  isBroken = false;
  await add("b");
});

test("however items arrive and work lasts: one batch at a time, none too large, each item once and in order", async () => {
  const arrivals = fc.array(fc.nat(4), { minLength: 1, maxLength: 30 });
  const durations = fc.infiniteStream(fc.tuple(fc.nat(6), fc.boolean()));
  await fc.assert(
    fc.asyncProperty(arrivals, durations, fc.integer({ min: 1, max: 5 }), async (gaps, lasts, maxItems) => {
      const seen: number[] = [];
      const failed = new Set<number>();
      let underWay = 0;
      const add = coalesce<number>(async (items) => {
        const [duration, fails] = lasts.next().value;
        underWay++;
        expect(underWay).toBe(1);
        expect(items.length).toBeGreaterThan(0);
        expect(items.length).toBeLessThanOrEqual(maxItems);
        seen.push(...items);
        await turns(duration);
        underWay--;
        if (!fails) return;
        items.forEach((item) => failed.add(item));
        throw new Error("refused");
      }, maxItems);
      const added: Promise<void>[] = [];
      for (const [item, gap] of gaps.entries()) {
        await turns(gap);
        added.push(add(item));
      }
      const results = await Promise.allSettled(added);
      expect(seen).toEqual(gaps.map((_, item) => item));
      expect(results.map(({ status }) => status === "rejected")).toEqual(seen.map((item) => failed.has(item)));
    }),
    { seed: 20_281, numRuns: 200 },
  );
});
