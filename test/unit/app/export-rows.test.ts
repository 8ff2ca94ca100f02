import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { settledUntil, startExport, type Export, type ExportEnd } from "../../../src/app/export/export-rows.ts";
import { compareKeys, firstDeliveriesAfter, type DeliveryKey } from "../../../src/core/row-keys.ts";
import { parseCursor } from "../../../src/core/cursor.ts";
import { eventIdTimeMs, firstEventIdAt } from "../../../src/core/ids.ts";

/** Numbers from 1 to `count`, `pageRows` looked at a time, of which those in `hidden` are not shown. */
function numbers(
  count: number,
  pageRows: number,
  { from = 0, limit = 1_000, clock = { now: 0 }, hidden = new Set<number>() } = {},
) {
  const reads: number[] = [];
  const rows: Export<number> = startExport<number, [number]>(
    { now: () => clock.now },
    {
      kind: "n",
      from: [from],
      until: 5,
      end: [count],
      async read([after]) {
        reads.push(after);
        const looked = Array.from({ length: count - after }, (_, i) => after + i + 1).slice(0, pageRows);
        return {
          rows: looked.filter((n) => !hidden.has(n)).map((n) => ({ row: n, place: [n] as [number] })),
          next: looked.length === pageRows ? [looked.at(-1)!] : null,
        };
      },
    },
    limit,
  );
  return { rows, reads };
}

async function readAll(rows: Export<number>): Promise<{ all: number[]; end: ExportEnd; cursor: number }> {
  const all: number[] = [];
  for (;;) {
    const { rows: some, end } = await rows.next();
    all.push(...some);
    if (!end) continue;
    const cursor = parseCursor(end.nextCursor, ["string", "number"]);
    if (!cursor.ok) throw new Error(end.nextCursor);
    return { all, end, cursor: cursor.value[1] };
  }
}

describe("an export", () => {
  test("of any length in answers of any length has every row once, and ends", async () => {
    const shape = fc.record({
      count: fc.nat(40),
      pageRows: fc.integer({ min: 1, max: 9 }),
      limit: fc.integer({ min: 1, max: 12 }),
    });
    await fc.assert(
      fc.asyncProperty(
        shape,
        fc.uniqueArray(fc.integer({ min: 1, max: 40 })),
        async ({ count, pageRows, limit }, secret) => {
          const hidden = new Set(secret);
          const got: number[] = [];
          let from = 0;
          for (let answers = 0; ; answers++) {
            expect(answers).toBeLessThan(100);
            const { all, end, cursor } = await readAll(numbers(count, pageRows, { from, limit, hidden }).rows);
            expect(all.length).toBeLessThanOrEqual(limit);
            got.push(...all);
            from = cursor;
            if (!end.hasMore) break;
          }
          expect(got).toEqual(Array.from({ length: count }, (_, i) => i + 1).filter((n) => !hidden.has(n)));
          expect(from).toBe(count);
        },
      ),
    );
  });

  test("reads nothing that was not asked for", async () => {
    const { rows, reads } = numbers(100, 10);
    expect(reads).toEqual([]);
    await rows.next();
    await rows.next();
    expect(reads).toEqual([0, 10]);
  });

  test("that takes longer than twenty seconds ends with a cursor", async () => {
    const clock = { now: 0 };
    const { rows } = numbers(100, 10, { clock });
    expect((await rows.next()).end).toBeNull();
    clock.now = 20_001;
    const { end } = await rows.next();
    expect(end).toMatchObject({ hasMore: true });
    expect(parseCursor(end!.nextCursor, ["string", "number"])).toMatchObject({ value: ["n", 20] });
  });

  test("from a place behind its end goes on from there the next time", async () => {
    const { rows } = numbers(10, 10, { from: 99 });
    expect(await readAll(rows)).toMatchObject({ all: [], end: { hasMore: false }, cursor: 99 });
  });
});

test("what is settled is what was asked for, five minutes old, and before anything unfinished", () => {
  const now = 1_000_000_000;
  expect(settledUntil(now, undefined, null)).toBe(now - 300_000);
  expect(settledUntil(now, now, null)).toBe(now - 300_000);
  expect(settledUntil(now, 5, null)).toBe(5);
  expect(settledUntil(now, undefined, 7)).toBe(7);
});

test("behind any delivery, first or replay, come exactly the first deliveries that are later in the order of all", () => {
  const endpoint = fc.constantFrom("ep_a", "ep_b");
  const eventId = fc
    .tuple(fc.integer({ min: 1, max: 4 }), fc.constantFrom("a", "b"))
    .map(([ms, x]) => firstEventIdAt(ms).slice(0, -1) + x);
  const first = fc.tuple(eventId, endpoint).map(([id, ep]): DeliveryKey => [eventIdTimeMs(id), id, ep, 0]);
  // A replay by a clock that is behind may be older than its event.
  const replay = fc
    .tuple(fc.integer({ min: 0, max: 6 }), eventId, endpoint)
    .map(([at, id, ep]): DeliveryKey => [at, id, ep, 1]);
  fc.assert(
    fc.property(first, fc.oneof(first, replay), (candidate, place) => {
      const [, id, ep] = candidate;
      const isBehind = compareKeys([id, ep], firstDeliveriesAfter(place)) > 0;
      expect(isBehind).toBe(compareKeys(candidate, place) > 0);
    }),
    { numRuns: 5_000 },
  );
});
