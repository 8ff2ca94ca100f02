import fc from "fast-check";
import { expect, test } from "vitest";
import { inTurn } from "../../../src/compose/in-turn.ts";

/** Lets everything that is ready run. */
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

test("of many calls no more are under way than may be, each begins once, in order, and all end", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 4 }),
      fc.array(fc.record({ fails: fc.boolean(), endsFirst: fc.boolean() }), { maxLength: 30 }),
      async (most, calls) => {
        const call = inTurn(most, settled);
        const begun: number[] = [];
        const open: { end: () => void; endsFirst: boolean }[] = [];
        const results = Promise.allSettled(
          calls.map(({ fails, endsFirst }, n) =>
            call(async () => {
              begun.push(n);
              await new Promise<void>((end) => open.push({ end, endsFirst }));
              if (fails) throw new Error(String(n));
              return n;
            }),
          ),
        );
        for (let ended = 0; ended < calls.length; ended++) {
          await settled();
          await settled();
          expect(open).toHaveLength(Math.min(most, calls.length - ended));
          const next = open.findIndex(({ endsFirst }) => endsFirst);
          open.splice(Math.max(next, 0), 1)[0]!.end();
        }
        expect(begun).toEqual(calls.map((_, n) => n));
        expect(await results).toEqual(
          calls.map(({ fails }, n) =>
            fails ? { status: "rejected", reason: new Error(String(n)) } : { status: "fulfilled", value: n },
          ),
        );
      },
    ),
  );
});

test("one that comes when a place has become free takes it without a pause", async () => {
  const call = inTurn(1, () => Promise.reject(new Error("Nobody waits.")));
  await call(async () => {});
  let hasBegun = false;
  void call(async () => void (hasBegun = true));
  expect(hasBegun).toBe(true);
});
